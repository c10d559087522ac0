//! In which of its two forms a caller speaks 0.3 over HTTP+JSON: told by the body, or by what they sent before.

use super::path::Target;
use flotilla_core::ids::PrincipalId;
use flotilla_protocol::proto03::file::Files;
use flotilla_protocol::v03::Form;
use flotilla_protocol::wire::Json;
use http::HeaderMap;
use http::header::USER_AGENT;
use serde::Deserialize;
use std::collections::HashSet;
use std::sync::Mutex;

/// The published SDKs speak this one.
pub const DEFAULT: Form = Form::Proto;
/// Of how many callers the form is remembered.
const REMEMBERED: usize = 10_000;

/// Members that only one of the forms has.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Signs {
    message: Option<MessageSigns>,
    request: Option<Json>,
    // Of a push config, and of a cancel.
    parent: Option<Json>,
    config: Option<Json>,
    name: Option<Json>,
    #[serde(rename = "taskId", alias = "task_id")]
    task_id: Option<Json>,
    #[serde(rename = "pushNotificationConfig", alias = "push_notification_config")]
    push_config: Option<Json>,
    id: Option<Json>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct MessageSigns {
    kind: Option<Json>,
    parts: Option<Json>,
    content: Option<Json>,
    role: Option<String>,
}

/// The form of a body; none where it does not show.
pub fn of(target: &Target, body: &[u8]) -> Option<Form> {
    let signs: Signs = serde_json::from_slice(body).ok()?;
    let told = |kind: bool, proto: bool| match (kind, proto) {
        (true, _) => Some(Form::Kind),
        (false, true) => Some(Form::Proto),
        (false, false) => None,
    };
    match target {
        Target::Send | Target::Stream => {
            let message = signs.message.unwrap_or_default();
            let role = message.role.unwrap_or_default();
            let kind = message.kind.is_some() || message.parts.is_some() || matches!(role.as_str(), "user" | "agent");
            told(kind, message.content.is_some() || signs.request.is_some() || role.starts_with("ROLE_"))
        }
        Target::CreatePush(_) => {
            let proto = signs.parent.is_some() || signs.config.is_some() || signs.name.is_some();
            told(!proto && (signs.task_id.is_some() || signs.push_config.is_some()), proto)
        }
        Target::Cancel(_) | Target::Subscribe(_) => told(signs.id.is_some(), signs.name.is_some()),
        Target::List
        | Target::Get(_)
        | Target::ListPush(_)
        | Target::GetPush(..)
        | Target::DeletePush(..)
        | Target::ExtendedCard => None,
    }
}

/// The form with files as this caller has them.
pub fn of_caller(form: Form, headers: &HeaderMap) -> Form {
    let name = headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match (form, Files::of_caller(name)) {
        (Form::Proto, Files::Bytes) => Form::ProtoBytes,
        _ => form,
    }
}

/// Callers whose latest body was not in the default form.
#[derive(Default)]
pub struct Forms(Mutex<HashSet<PrincipalId>>);

impl Forms {
    /// The form to answer in, which is remembered where a body told it.
    pub fn settle(&self, principal: PrincipalId, told: Option<Form>) -> Form {
        let mut other = self.0.lock().expect("no panic while holding the forms");
        match told {
            None if other.contains(&principal) => Form::Kind,
            None => DEFAULT,
            Some(form @ (Form::Proto | Form::ProtoBytes)) => {
                other.remove(&principal);
                form
            }
            Some(Form::Kind) => {
                if other.len() >= REMEMBERED {
                    other.clear();
                }
                other.insert(principal);
                Form::Kind
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DEFAULT, Form, Forms, Target, of};
    use flotilla_core::ids::PrincipalId;

    #[test]
    fn a_body_shows_its_form() {
        let send = |body: &str| of(&Target::Send, body.as_bytes());
        assert_eq!(send(r#"{"message":{"kind":"message","parts":[]}}"#), Some(Form::Kind));
        assert_eq!(send(r#"{"message":{"role":"user"}}"#), Some(Form::Kind));
        assert_eq!(send(r#"{"message":{"role":"ROLE_USER","content":[]}}"#), Some(Form::Proto));
        assert_eq!(send(r#"{"request":{}}"#), Some(Form::Proto));
        assert_eq!(send("{}"), None);
        let push = |body: &str| of(&Target::CreatePush("t".into()), body.as_bytes());
        assert_eq!(push(r#"{"taskId":"t","pushNotificationConfig":{}}"#), Some(Form::Kind));
        assert_eq!(push(r#"{"name":"tasks/t","pushNotificationConfig":{}}"#), Some(Form::Proto));
        assert_eq!(push(r#"{"parent":"tasks/t","config":{}}"#), Some(Form::Proto));
        assert_eq!(of(&Target::Cancel("t".into()), br#"{"name":"tasks/t"}"#), Some(Form::Proto));
        assert_eq!(of(&Target::Cancel("t".into()), b""), None);
    }

    #[test]
    fn what_shows_no_form_is_answered_in_the_callers_latest() {
        let forms = Forms::default();
        let (one, other) = (PrincipalId(1), PrincipalId(2));
        assert_eq!(forms.settle(one, None), DEFAULT);
        assert_eq!(forms.settle(one, Some(Form::Kind)), Form::Kind);
        assert_eq!(forms.settle(one, None), Form::Kind);
        assert_eq!(forms.settle(other, None), DEFAULT);
        assert_eq!(forms.settle(one, Some(Form::Proto)), Form::Proto);
        assert_eq!(forms.settle(one, None), Form::Proto);
    }
}
