//! Refusals and the one table that gives each its JSON-RPC, HTTP and gRPC form (spec 5.4).

use crate::time::Millis;
use serde_json::{Value, json};
use std::time::Duration;

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    TaskNotFound,
    TaskNotCancelable,
    PushNotificationNotSupported,
    UnsupportedOperation,
    ContentTypeNotSupported,
    InvalidAgentResponse,
    ExtendedAgentCardNotConfigured,
    ExtensionSupportRequired,
    VersionNotSupported,
    ParseError,
    InvalidRequest,
    /// An HTTP/1.1 request without a Host.
    HostRequired,
    MethodNotFound,
    /// An HTTP path that takes other verbs.
    VerbNotAllowed,
    InvalidParams,
    Internal,
    Unauthenticated,
    PermissionDenied,
    AgentNotFound,
    /// Something of the hub's own that is not there.
    NotFound,
    /// Something of the hub's own whose name is taken.
    AlreadyExists,
    IdempotencyConflict,
    MediaTypeNotSupported,
    /// A gRPC message in a coding we do not read.
    CompressionNotSupported,
    PayloadTooLarge,
    /// The head of an HTTP request.
    HeadersTooLarge,
    /// The request came too slowly to be waited for.
    RequestTimeout,
    /// The caller's own deadline is over, which only gRPC has.
    DeadlineExceeded,
    ResourceExhausted,
    /// Too many messages wait for an agent that is not connected.
    QueueFull,
    /// Too many wait for the agents of a workspace.
    TenantQueueFull,
    Unavailable,
}

/// One row of the table: how a reason looks in each binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    pub reason: &'static str,
    pub rpc: i32,
    pub http: u16,
    pub grpc: &'static str,
    /// Whether the protocol and its SDKs know this error, or it is our own.
    pub standard: bool,
}

const fn a2a(reason: &'static str, rpc: i32, http: u16, grpc: &'static str) -> Row {
    Row { reason, rpc, http, grpc, standard: true }
}

const fn own(reason: &'static str, rpc: i32, http: u16, grpc: &'static str) -> Row {
    Row { reason, rpc, http, grpc, standard: false }
}

impl Reason {
    pub const ALL: [Self; 32] = [
        Self::TaskNotFound,
        Self::TaskNotCancelable,
        Self::PushNotificationNotSupported,
        Self::UnsupportedOperation,
        Self::ContentTypeNotSupported,
        Self::InvalidAgentResponse,
        Self::ExtendedAgentCardNotConfigured,
        Self::ExtensionSupportRequired,
        Self::VersionNotSupported,
        Self::ParseError,
        Self::InvalidRequest,
        Self::HostRequired,
        Self::MethodNotFound,
        Self::VerbNotAllowed,
        Self::InvalidParams,
        Self::Internal,
        Self::Unauthenticated,
        Self::PermissionDenied,
        Self::AgentNotFound,
        Self::NotFound,
        Self::AlreadyExists,
        Self::IdempotencyConflict,
        Self::MediaTypeNotSupported,
        Self::CompressionNotSupported,
        Self::PayloadTooLarge,
        Self::HeadersTooLarge,
        Self::RequestTimeout,
        Self::DeadlineExceeded,
        Self::ResourceExhausted,
        Self::QueueFull,
        Self::TenantQueueFull,
        Self::Unavailable,
    ];

    pub const fn row(self) -> Row {
        match self {
            Self::TaskNotFound => a2a("TASK_NOT_FOUND", -32001, 404, "NOT_FOUND"),
            Self::TaskNotCancelable => a2a("TASK_NOT_CANCELABLE", -32002, 400, "FAILED_PRECONDITION"),
            Self::PushNotificationNotSupported => {
                a2a("PUSH_NOTIFICATION_NOT_SUPPORTED", -32003, 400, "FAILED_PRECONDITION")
            }
            Self::UnsupportedOperation => a2a("UNSUPPORTED_OPERATION", -32004, 400, "FAILED_PRECONDITION"),
            Self::ContentTypeNotSupported => a2a("CONTENT_TYPE_NOT_SUPPORTED", -32005, 400, "INVALID_ARGUMENT"),
            Self::InvalidAgentResponse => a2a("INVALID_AGENT_RESPONSE", -32006, 500, "INTERNAL"),
            Self::ExtendedAgentCardNotConfigured => {
                a2a("EXTENDED_AGENT_CARD_NOT_CONFIGURED", -32007, 400, "FAILED_PRECONDITION")
            }
            Self::ExtensionSupportRequired => a2a("EXTENSION_SUPPORT_REQUIRED", -32008, 400, "FAILED_PRECONDITION"),
            Self::VersionNotSupported => a2a("VERSION_NOT_SUPPORTED", -32009, 400, "FAILED_PRECONDITION"),
            Self::ParseError => own("INVALID_JSON", -32700, 400, "INVALID_ARGUMENT"),
            Self::InvalidRequest => a2a("INVALID_REQUEST", -32600, 400, "INVALID_ARGUMENT"),
            Self::HostRequired => own("HOST_REQUIRED", -32600, 400, "INVALID_ARGUMENT"),
            Self::MethodNotFound => a2a("METHOD_NOT_FOUND", -32601, 404, "UNIMPLEMENTED"),
            Self::VerbNotAllowed => own("METHOD_NOT_ALLOWED", -32601, 405, "UNIMPLEMENTED"),
            Self::InvalidParams => a2a("INVALID_PARAMS", -32602, 400, "INVALID_ARGUMENT"),
            Self::Internal => own("INTERNAL", -32603, 500, "INTERNAL"),
            Self::Unauthenticated => own("UNAUTHENTICATED", -32010, 401, "UNAUTHENTICATED"),
            Self::PermissionDenied => own("PERMISSION_DENIED", -32011, 403, "PERMISSION_DENIED"),
            Self::AgentNotFound => own("AGENT_NOT_FOUND", -32602, 404, "NOT_FOUND"),
            Self::NotFound => own("NOT_FOUND", -32602, 404, "NOT_FOUND"),
            Self::AlreadyExists => own("ALREADY_EXISTS", -32602, 409, "ALREADY_EXISTS"),
            Self::IdempotencyConflict => own("IDEMPOTENCY_CONFLICT", -32602, 409, "ALREADY_EXISTS"),
            // The HTTP body's own type, not a part's: 415 is what HTTP has for it.
            Self::MediaTypeNotSupported => a2a("CONTENT_TYPE_NOT_SUPPORTED", -32005, 415, "INVALID_ARGUMENT"),
            Self::CompressionNotSupported => own("COMPRESSION_NOT_SUPPORTED", -32600, 415, "UNIMPLEMENTED"),
            Self::PayloadTooLarge => own("PAYLOAD_TOO_LARGE", -32600, 413, "RESOURCE_EXHAUSTED"),
            Self::HeadersTooLarge => own("HEADERS_TOO_LARGE", -32600, 431, "RESOURCE_EXHAUSTED"),
            Self::RequestTimeout => own("REQUEST_TIMEOUT", -32600, 408, "DEADLINE_EXCEEDED"),
            Self::DeadlineExceeded => own("DEADLINE_EXCEEDED", -32603, 504, "DEADLINE_EXCEEDED"),
            Self::ResourceExhausted => own("RESOURCE_EXHAUSTED", -32013, 429, "RESOURCE_EXHAUSTED"),
            Self::QueueFull => own("QUEUE_FULL", -32012, 429, "RESOURCE_EXHAUSTED"),
            Self::TenantQueueFull => own("TENANT_QUEUE_FULL", -32014, 429, "RESOURCE_EXHAUSTED"),
            Self::Unavailable => own("UNAVAILABLE", -32603, 503, "UNAVAILABLE"),
        }
    }
}

/// A field that is wrong, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub field: String,
    pub description: String,
}

/// The caller's problem, with text that says what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub reason: Reason,
    pub message: String,
    pub violations: Vec<Violation>,
    /// Facts for machines: `taskId`, `supportedVersions` and the like.
    pub facts: Vec<(&'static str, String)>,
    /// How long to wait before trying again, in seconds, where that helps.
    pub retry_after: Option<u32>,
}

impl Refusal {
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        let later = matches!(
            reason,
            Reason::ResourceExhausted | Reason::QueueFull | Reason::TenantQueueFull | Reason::Unavailable
        );
        let retry_after = later.then_some(1);
        Self { reason, message: message.into(), violations: Vec::new(), facts: Vec::new(), retry_after }
    }

    /// One wrong field.
    pub fn invalid(field: &str, description: impl Into<String>) -> Self {
        let description = description.into();
        Self::violations(vec![Violation { field: field.to_owned(), description }])
    }

    pub fn violations(violations: Vec<Violation>) -> Self {
        let told: Vec<String> = violations
            .iter()
            .map(|v| if v.field.is_empty() { v.description.clone() } else { format!("{}: {}", v.field, v.description) })
            .collect();
        let message = format!("Invalid parameters: {}", told.join("; "));
        Self { violations, ..Self::new(Reason::InvalidParams, message) }
    }

    #[must_use]
    pub fn fact(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.facts.push((name, value.into()));
        self
    }

    /// When to try again: in whole seconds, as HTTP has it.
    #[must_use]
    pub fn retry_after(self, wait: Duration) -> Self {
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        Self { retry_after: Some(u32::try_from(seconds).unwrap_or(u32::MAX)), ..self }
    }

    /// The task is not there, or not the caller's: the same answer on purpose.
    pub fn no_task(id: &str) -> Self {
        Self::new(Reason::TaskNotFound, "The task does not exist or is not accessible to you.").fact("taskId", id)
    }

    /// Whose error a row is.
    pub const fn domain(row: Row) -> &'static str {
        if row.standard { "a2a-protocol.org" } else { "flotilla" }
    }

    /// The `google.rpc` detail objects every binding carries.
    pub fn details(&self, now: Millis) -> Vec<Value> {
        let row = self.reason.row();
        let mut facts: serde_json::Map<String, Value> =
            self.facts.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        facts.insert("timestamp".into(), json!(now.to_string()));
        let mut details = vec![json!({
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": row.reason,
            "domain": Self::domain(row),
            "metadata": facts,
        })];
        if !self.violations.is_empty() {
            let fields: Vec<Value> =
                self.violations.iter().map(|v| json!({"field": v.field, "description": v.description})).collect();
            details.push(json!({"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": fields}));
        }
        details
    }
}
