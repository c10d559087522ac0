//! gRPC statuses: a refusal's code with its `google.rpc` details (spec 10.6), and back.

use crate::rpc;
use crate::rpc::bad_request::FieldViolation;
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::time::Millis;
use prost::Message as _;
use prost_types::{Any, Duration};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Clients take 8 KiB of trailers, and make another error of more: what a status says is held to so many bytes,
const MESSAGE: usize = 768;
/// each fact and description to so many,
const WORDS: usize = 256;
/// and all violations together to so many.
const VIOLATIONS: usize = 1536;

/// The status codes of gRPC, by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    Ok = 0,
    Cancelled = 1,
    Unknown = 2,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    AlreadyExists = 6,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Aborted = 10,
    OutOfRange = 11,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    DataLoss = 15,
    Unauthenticated = 16,
}

impl Code {
    pub const ALL: [Self; 17] = [
        Self::Ok,
        Self::Cancelled,
        Self::Unknown,
        Self::InvalidArgument,
        Self::DeadlineExceeded,
        Self::NotFound,
        Self::AlreadyExists,
        Self::PermissionDenied,
        Self::ResourceExhausted,
        Self::FailedPrecondition,
        Self::Aborted,
        Self::OutOfRange,
        Self::Unimplemented,
        Self::Internal,
        Self::Unavailable,
        Self::DataLoss,
        Self::Unauthenticated,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Cancelled => "CANCELLED",
            Self::Unknown => "UNKNOWN",
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Self::NotFound => "NOT_FOUND",
            Self::AlreadyExists => "ALREADY_EXISTS",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Self::FailedPrecondition => "FAILED_PRECONDITION",
            Self::Aborted => "ABORTED",
            Self::OutOfRange => "OUT_OF_RANGE",
            Self::Unimplemented => "UNIMPLEMENTED",
            Self::Internal => "INTERNAL",
            Self::Unavailable => "UNAVAILABLE",
            Self::DataLoss => "DATA_LOSS",
            Self::Unauthenticated => "UNAUTHENTICATED",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.name() == name)
    }

    /// What the one table of refusals says of this reason.
    pub fn of(reason: Reason) -> Self {
        Self::from_name(reason.row().grpc).unwrap_or(Self::Unknown)
    }
}

/// A status with its details, before it is put into trailers.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    pub code: Code,
    pub message: String,
    /// `google.rpc.Status`, encoded; empty if there are no details.
    pub details: Vec<u8>,
}

impl Status {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: cut(&message.into(), MESSAGE), details: Vec::new() }
    }

    pub fn of(refusal: &Refusal, now: Millis) -> Self {
        Self::told(Code::of(refusal.reason), refusal.message.clone(), refusal, now)
    }

    /// A refusal under another code or text than its own.
    pub(crate) fn told(code: Code, message: String, refusal: &Refusal, now: Millis) -> Self {
        let row = refusal.reason.row();
        let message = cut(&message, MESSAGE);
        let facts = refusal.facts.iter().map(|(name, value)| ((*name).to_owned(), cut(value, WORDS)));
        let info = rpc::ErrorInfo {
            reason: row.reason.to_owned(),
            domain: Refusal::domain(row).to_owned(),
            metadata: facts.chain([("timestamp".to_owned(), now.to_string())]).collect(),
        };
        let mut details = vec![any("ErrorInfo", &info)];
        if !refusal.violations.is_empty() {
            details.push(any("BadRequest", &rpc::BadRequest { field_violations: violations(refusal) }));
        }
        if let Some(seconds) = refusal.retry_after {
            let retry_delay = Some(Duration { seconds: seconds.into(), nanos: 0 });
            details.push(any("RetryInfo", &rpc::RetryInfo { retry_delay }));
        }
        let status = rpc::Status { code: code as i32, message: message.clone(), details };
        Self { code, message, details: status.encode_to_vec() }
    }
}

/// Details as JSON has them. Of a kind that is not known here, only how much there is of it.
pub fn details_json(status: &rpc::Status) -> Value {
    let shown = status.details.iter().map(|detail| {
        let value = detail.value.as_slice();
        let name = detail.type_url.rsplit(['/', '.']).next().unwrap_or_default();
        let read = match name {
            "ErrorInfo" => rpc::ErrorInfo::decode(value).ok().map(|info| {
                let metadata: BTreeMap<_, _> = info.metadata.into_iter().collect();
                json!({"reason": info.reason, "domain": info.domain, "metadata": metadata})
            }),
            "BadRequest" => rpc::BadRequest::decode(value).ok().map(|bad| {
                let field = |it: FieldViolation| json!({"field": it.field, "description": it.description});
                json!({"fieldViolations": bad.field_violations.into_iter().map(field).collect::<Vec<_>>()})
            }),
            "RetryInfo" => rpc::RetryInfo::decode(value).ok().map(|retry| {
                let delay = retry.retry_delay.unwrap_or_default();
                json!({"retryDelay": format!("{}.{:03}s", delay.seconds, delay.nanos / 1_000_000)})
            }),
            _ => None,
        };
        let mut read = read.unwrap_or_else(|| json!({"bytes": value.len()}));
        read["@type"] = json!(detail.type_url);
        read
    });
    shown.collect()
}

/// As many as fit, and how many more there are.
fn violations(refusal: &Refusal) -> Vec<FieldViolation> {
    let (mut told, mut room) = (Vec::new(), VIOLATIONS);
    for (index, violation) in refusal.violations.iter().enumerate() {
        let (field, description) = (cut(&violation.field, WORDS), cut(&violation.description, WORDS));
        let Some(left) = room.checked_sub(field.len() + description.len()) else {
            let more = refusal.violations.len() - index;
            told.push(FieldViolation { field: String::new(), description: format!("and {more} more of the kind") });
            break;
        };
        room = left;
        told.push(FieldViolation { field, description });
    }
    told
}

/// At most so many bytes of a text, and a sign where that is not all.
fn cut(text: &str, most: usize) -> String {
    const SIGN: &str = "…";
    if text.len() <= most {
        return text.to_owned();
    }
    format!("{}{SIGN}", &text[..text.floor_char_boundary(most - SIGN.len())])
}

fn any<T: prost::Message>(name: &str, detail: &T) -> Any {
    Any { type_url: format!("type.googleapis.com/google.rpc.{name}"), value: detail.encode_to_vec() }
}

#[cfg(test)]
mod tests {
    use super::{Code, Status, details_json};
    use crate::rpc;
    use flotilla_protocol::a2a::error::{Reason, Refusal};
    use flotilla_protocol::time::Millis;
    use prost::Message as _;

    #[test]
    fn every_reason_has_a_code() {
        for reason in Reason::ALL {
            assert!(Code::from_name(reason.row().grpc).is_some(), "{reason:?}");
        }
    }

    #[test]
    fn a_refusal_carries_what_json_carries() {
        let status = Status::of(&Refusal::invalid("message.role", "is required").fact("a", "b"), Millis(0));
        let sent = rpc::Status::decode(status.details.as_slice()).expect("a status");
        assert_eq!((sent.code, sent.details.len()), (3, 2));
        let info = rpc::ErrorInfo::decode(sent.details[0].value.as_slice()).expect("an ErrorInfo");
        assert_eq!((info.reason.as_str(), info.domain.as_str()), ("INVALID_PARAMS", "a2a-protocol.org"));
        assert_eq!(info.metadata["a"], "b");
        let bad = rpc::BadRequest::decode(sent.details[1].value.as_slice()).expect("a BadRequest");
        assert_eq!(bad.field_violations[0].field, "message.role");
    }

    #[test]
    fn details_can_be_read_by_people() {
        let refusal = Refusal::invalid("message.role", "is required").fact("a", "b");
        let status = Status::of(&refusal.retry_after(std::time::Duration::from_secs(7)), Millis(0));
        let mut sent = rpc::Status::decode(status.details.as_slice()).expect("a status");
        let odd = prost_types::Any { type_url: "example.com/x.Odd".into(), value: vec![1, 2, 3] };
        sent.details.push(odd);
        let shown = details_json(&sent);
        assert_eq!(shown[0]["@type"], "type.googleapis.com/google.rpc.ErrorInfo");
        assert_eq!((&shown[0]["reason"], &shown[0]["metadata"]["a"]), (&"INVALID_PARAMS".into(), &"b".into()));
        assert_eq!(shown[1]["fieldViolations"][0]["field"], "message.role");
        assert_eq!(shown[2]["retryDelay"], "7.000s");
        assert_eq!(shown[3], serde_json::json!({"@type": "example.com/x.Odd", "bytes": 3}));
    }

    #[test]
    fn a_status_fits_into_the_trailers_that_clients_take() {
        let long = "ä".repeat(10_000);
        let mut refusal = Refusal::invalid("message.parts[0]", &long).fact("taskId", long.clone());
        let violation = refusal.violations[0].clone();
        refusal.violations.extend(std::iter::repeat_n(violation, 99));
        let status = Status::told(Code::InvalidArgument, long, &refusal, Millis(0));
        // The message is escaped, three bytes for one, and the details are in base64.
        let size = status.message.len() * 3 + status.details.len() * 4 / 3;
        assert!(size < 8 * 1024 - 512, "{size}");
        let sent = rpc::Status::decode(status.details.as_slice()).expect("a status");
        let bad = rpc::BadRequest::decode(sent.details[1].value.as_slice()).expect("a BadRequest");
        let told = bad.field_violations.len() - 1;
        assert_eq!(bad.field_violations[told].description, format!("and {} more of the kind", 100 - told));
        assert!(status.message.ends_with('…') && told > 3, "{told}");
    }
}
