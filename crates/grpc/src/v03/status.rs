//! Statuses as clients of 0.3 know them: the error's name before its text, and their own codes for some.

use crate::status::{Code, Status};
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::time::Millis;

/// A refusal's status, with the same details as in 1.0.
pub fn status(refusal: &Refusal, now: Millis) -> Status {
    let message = match name(refusal.reason) {
        // These two words are what clients look for.
        Some(name) if refusal.reason == Reason::TaskNotFound => format!("{name}: Task not found. {}", refusal.message),
        Some(name) => format!("{name}: {}", refusal.message),
        None => refusal.message.clone(),
    };
    Status::told(code(refusal.reason), message, refusal, now)
}

/// Where 0.3 uses another code than 1.0: what an agent cannot do was UNIMPLEMENTED.
fn code(reason: Reason) -> Code {
    match reason {
        Reason::PushNotificationNotSupported
        | Reason::UnsupportedOperation
        | Reason::ExtendedAgentCardNotConfigured => Code::Unimplemented,
        other => Code::of(other),
    }
}

/// The published SDKs know an error by this word in front of the text; what is not of A2A has none.
fn name(reason: Reason) -> Option<&'static str> {
    match reason.row().rpc {
        -32001 => Some("TaskNotFoundError"),
        -32002 => Some("TaskNotCancelableError"),
        -32003 => Some("PushNotificationNotSupportedError"),
        -32004 => Some("UnsupportedOperationError"),
        -32005 => Some("ContentTypeNotSupportedError"),
        -32006 => Some("InvalidAgentResponseError"),
        -32007 => Some("AuthenticatedExtendedCardNotConfiguredError"),
        -32600 => Some("InvalidRequestError"),
        -32601 => Some("MethodNotFoundError"),
        -32602 => Some("InvalidParamsError"),
        -32603 => Some("InternalError"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::status;
    use crate::status::Code;
    use flotilla_protocol::a2a::error::{Reason, Refusal};
    use flotilla_protocol::time::Millis;

    #[test]
    fn errors_have_their_name_in_front_and_the_codes_of_their_version() {
        for (reason, code, text) in [
            (Reason::TaskNotFound, Code::NotFound, "TaskNotFoundError: Task not found. x"),
            (Reason::TaskNotCancelable, Code::FailedPrecondition, "TaskNotCancelableError: x"),
            (Reason::UnsupportedOperation, Code::Unimplemented, "UnsupportedOperationError: x"),
            (Reason::Unauthenticated, Code::Unauthenticated, "x"),
            (Reason::ResourceExhausted, Code::ResourceExhausted, "x"),
        ] {
            let told = status(&Refusal::new(reason, "x"), Millis(0));
            assert_eq!((told.code, told.message.as_str()), (code, text));
            assert!(!told.details.is_empty());
        }
    }
}
