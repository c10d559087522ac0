//! Why a call to an agent failed, the same for every binding (spec 5.4).

use flotilla_protocol::a2a::error::Reason;
use http::HeaderMap;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::Duration;

/// What the transport called an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Code {
    /// A JSON-RPC code or an HTTP status.
    Number(i64),
    /// A gRPC status.
    Name(String),
}

/// Characters that are kept of what is no JSON, and those that are shown. More is kept than shown, so that a secret at
/// the edge is masked whole.
const KEPT: usize = 4096;
const SHOWN: usize = 64;
/// A message of this size may be more than an agent takes.
const LARGE: usize = 1024 * 1024;
/// Characters that are told of a refusal in plain text.
const WORDS: usize = 500;

fn begins(body: &str) -> String {
    if body.trim().is_empty() {
        return "it is empty".into();
    }
    let start: String = body.trim_start().chars().take(SHOWN).collect();
    format!("it begins with '{}'", start.escape_debug())
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    #[error("there is no agent card at {reference}: {problem}")]
    CardNotFound { reference: String, problem: String },
    #[error("the agent card at {reference} is not usable: {problem}")]
    CardInvalid { reference: String, problem: String },
    #[error("{address} is not an address: {problem}")]
    Address { address: String, problem: String },
    #[error("{address} holds a user name or a password, and everyone who sees the address sees it too")]
    AddressWithPassword { address: String },
    #[error("cannot reach {url}: {problem}")]
    Unreachable { url: String, problem: String },
    /// The same, before anything was sent.
    #[error("cannot reach {url}: {problem}")]
    Unconnected { url: String, problem: String },
    #[error("the certificate of {url} is not accepted: {problem}")]
    Untrusted { url: String, problem: String, advice: &'static str },
    /// A token server answered, and gave none.
    #[error("there is no token from {url}: {problem}")]
    NoToken { url: String, problem: String },
    #[error("the connection broke: {0}")]
    Broken(String),
    #[error("the agent wants a credential: {}", .schemes.join(", or "))]
    CredentialsMissing {
        schemes: Vec<String>,
        code: Option<Code>,
        /// Those the caller has, and the agent's card declares no use for: they were not shown.
        withheld: Vec<&'static str>,
    },
    #[error("the agent does not accept the credential: {message}")]
    AuthFailed { message: String, code: Code },
    /// The agent refused, under a name of the A2A specification.
    #[error("{message}")]
    Refused { reason: Reason, code: Option<Code>, message: String },
    /// The agent takes no more for now; `retry` says when it does, if it said so: `in 5 s`, `after DATE`.
    #[error("{message}")]
    Exhausted { message: String, code: Option<Code>, retry: Option<String> },
    #[error("the agent's card offers nothing this program speaks: {0}")]
    NoInterface(String),
    /// The agent, or something before it, answered with something else than JSON: a page, or nothing.
    #[error("the agent's answer is not JSON ({problem}): {}", begins(.body))]
    NotJson { problem: String, body: String },
    #[error("an answer is larger than {limit} bytes")]
    TooLarge { limit: usize },
    /// An id that cannot stand in an address.
    #[error("{0}")]
    Id(String),
    #[error("{0}")]
    Setting(String),
}

impl ClientError {
    /// The agent answered with something that is not A2A.
    pub fn malformed(problem: impl std::fmt::Display) -> Self {
        let message = format!("the agent's answer is not A2A: {problem}");
        Self::Refused { reason: Reason::InvalidAgentResponse, code: None, message }
    }

    /// The same, with the place of what cannot be read. It is read once more to find it, which only garbage costs.
    pub fn unreadable<T: DeserializeOwned>(json: &str, problem: &serde_json::Error) -> Self {
        let mut reader = serde_json::Deserializer::from_str(json);
        match serde_path_to_error::deserialize::<_, T>(&mut reader) {
            Err(placed) if problem.is_data() && placed.path().iter().next().is_some() => Self::malformed(placed),
            _ => Self::unparsed(json, problem),
        }
    }

    /// A text that should have been JSON, or JSON of another shape.
    pub fn unparsed(text: &str, problem: &serde_json::Error) -> Self {
        if problem.is_data() {
            return Self::malformed(problem);
        }
        Self::NotJson { problem: problem.to_string(), body: text.chars().take(KEPT).collect() }
    }

    /// Whoever refuses a large message may hang up before all of it has come, and its answer is lost then.
    pub(crate) fn of_message(self, bytes: usize) -> Self {
        match self {
            Self::Unreachable { url, problem } if bytes >= LARGE => {
                let problem = format!(
                    "{problem}; the message has {bytes} bytes, perhaps more than it takes: large files can go as a url"
                );
                Self::Unreachable { url, problem }
            }
            other => other,
        }
    }

    /// An agent may repeat a credential in what it answers.
    pub(crate) fn masked(self, clean: impl Fn(&str) -> String) -> Self {
        match self {
            Self::Refused { reason, code, message } => Self::Refused { reason, code, message: clean(&message) },
            Self::Exhausted { message, code, retry } => Self::Exhausted { message: clean(&message), code, retry },
            Self::AuthFailed { message, code } => Self::AuthFailed { message: clean(&message), code },
            Self::NotJson { problem, body } => Self::NotJson { problem, body: clean(&body) },
            Self::Broken(problem) => Self::Broken(clean(&problem)),
            Self::CredentialsMissing { schemes, code, withheld } => {
                let schemes = schemes.iter().map(|scheme| clean(scheme)).collect();
                Self::CredentialsMissing { schemes, code, withheld }
            }
            other => other,
        }
    }

    /// The same, with the credentials that were not shown.
    pub(crate) fn withholding(self, unused: &[&'static str]) -> Self {
        match self {
            Self::CredentialsMissing { schemes, code, .. } => {
                Self::CredentialsMissing { schemes, code, withheld: unused.to_vec() }
            }
            other => other,
        }
    }

    /// A refusal this side makes in the protocol's own words, before asking.
    pub fn local(reason: Reason, message: impl Into<String>) -> Self {
        Self::Refused { reason, code: None, message: message.into() }
    }

    /// Whether it has the name of this reason.
    pub fn is(&self, reason: Reason) -> bool {
        matches!(self, Self::Refused { reason: told, .. } if name_of(*told) == name_of(reason))
    }

    /// Whether the agent does not take a message of this size.
    pub fn is_about_size(&self) -> bool {
        matches!(self, Self::Refused { reason: Reason::PayloadTooLarge, .. })
    }

    /// Whether the agent itself answered, in a way that cannot be used and will not be otherwise a moment later.
    pub fn is_unusable(&self) -> bool {
        self.is(Reason::InvalidAgentResponse) || matches!(self, Self::TooLarge { .. } | Self::Id(_))
    }

    /// The HTTP status with which the agent leads calls elsewhere, where they do not follow it.
    pub fn redirect(&self) -> Option<i64> {
        match self {
            Self::Refused { code: Some(Code::Number(status @ 300..400)), .. } => Some(*status),
            _ => None,
        }
    }

    /// Whether the agent says that it does not do this at all.
    pub fn is_not_offered(&self) -> bool {
        let reasons = [Reason::MethodNotFound, Reason::UnsupportedOperation, Reason::VersionNotSupported];
        reasons.into_iter().any(|reason| self.is(reason))
    }

    /// When the agent takes more again, where it said so.
    pub fn retry_after(&self) -> Option<Duration> {
        let Self::Exhausted { retry: Some(retry), .. } = self else { return None };
        let seconds = retry.strip_prefix("in ")?.strip_suffix(" s")?;
        seconds.parse().ok().map(Duration::from_secs)
    }

    /// Whether the same call may succeed a moment later.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Unconnected { .. } | Self::Broken(_) | Self::Exhausted { .. })
    }
}

/// An error as a binding told it, before it has a name.
#[derive(Debug, Default)]
pub struct Told {
    pub message: String,
    /// The `reason` of the first `google.rpc.ErrorInfo`.
    pub reason: Option<String>,
    pub rpc: Option<i64>,
    pub http: Option<u16>,
    pub grpc: Option<String>,
    /// When to try again.
    pub retry: Option<String>,
}

impl Told {
    /// Reads `details` or `data`: an array of `google.rpc` objects.
    pub fn reason_in(details: &Value) -> Option<String> {
        let list = details.as_array()?;
        let info = list.iter().find(|detail| detail["@type"].as_str().is_some_and(|kind| kind.ends_with("ErrorInfo")));
        info?["reason"].as_str().map(str::to_owned)
    }

    /// What an answer says that is no A2A, beside its status: plain text, or what web frameworks say in its place. A page is
    /// for browsers. It is cut between words, so that a secret at the edge is masked whole or not there.
    pub fn words(status: u16, body: &str) -> String {
        let json: Value = serde_json::from_str(body).unwrap_or_default();
        let named = ["detail", "message", "error"].into_iter().find_map(|name| json[name].as_str().map(str::to_owned));
        let named = named.or_else(|| violations(&json["detail"]));
        let said = named.as_deref().unwrap_or(body).trim();
        if said.is_empty() || said.starts_with(['<', '{', '[']) {
            return format!("HTTP {status}");
        }
        let told: String = said.chars().take(WORDS).map(|c| if c.is_control() { ' ' } else { c }).collect();
        if said.chars().nth(WORDS).is_none() {
            return format!("HTTP {status}: {told}");
        }
        let whole = told.rfind(' ').map_or("", |end| &told[..end]);
        format!("HTTP {status}: {whole}…")
    }

    /// Reads `Retry-After`: seconds, or a date.
    pub fn retry_in(headers: &HeaderMap) -> Option<String> {
        let text = headers.get("retry-after")?.to_str().ok()?.trim();
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if is_number { Some(format!("in {text} s")) } else { (!text.is_empty()).then(|| format!("after {text}")) }
    }

    fn code(&self) -> Option<Code> {
        let number = self.rpc.or(self.http.map(i64::from)).map(Code::Number);
        number.or_else(|| self.grpc.clone().map(Code::Name))
    }

    /// The error under its A2A name; `credentials` says whether the call showed any.
    pub fn into_error(self, credentials: bool) -> ClientError {
        let code = self.code();
        let message = if self.message.is_empty() { "no reason given".to_owned() } else { self.message.clone() };
        let reason = self.reason();
        let is_kept_out = matches!(reason, Reason::Unauthenticated | Reason::PermissionDenied);
        if is_kept_out && !credentials {
            return ClientError::CredentialsMissing { schemes: vec![message], code, withheld: Vec::new() };
        }
        match (reason, code) {
            (Reason::Unauthenticated | Reason::PermissionDenied, Some(code)) => {
                ClientError::AuthFailed { message, code }
            }
            (Reason::ResourceExhausted, code) => ClientError::Exhausted { message, code, retry: self.retry },
            // Who says when to come back has not taken anything up.
            (Reason::Unavailable, code) if self.retry.is_some() => {
                ClientError::Exhausted { message, code, retry: self.retry }
            }
            // What gRPC calls UNAVAILABLE.
            (Reason::Unavailable, _) => ClientError::Broken(message),
            (reason, code) => ClientError::Refused { reason, code, message },
        }
    }

    /// Whether a gRPC server says, as those of several languages do, that it does not take a message of this size.
    fn is_about_size(&self) -> bool {
        let said = self.message.to_lowercase();
        ["received message larger than max", "message exceeds maximum", "message exceeds the maximum"]
            .iter()
            .any(|words| said.contains(words))
    }

    /// The reason if one is named, else what the transport's code stands for.
    fn reason(&self) -> Reason {
        let named = self.reason.as_deref().and_then(|name| Reason::ALL.into_iter().find(|r| r.row().reason == name));
        let by_rpc = || Reason::ALL.into_iter().find(|r| Some(i64::from(r.row().rpc)) == self.rpc);
        let by_http = || match self.http? {
            401 => Some(Reason::Unauthenticated),
            403 => Some(Reason::PermissionDenied),
            // The message is at fault.
            400 | 422 => Some(Reason::InvalidParams),
            413 => Some(Reason::PayloadTooLarge),
            // The path is there, and what it names is not.
            404 if self.grpc.as_deref() == Some("NOT_FOUND") => Some(Reason::TaskNotFound),
            404 | 405 | 501 => Some(Reason::MethodNotFound),
            429 => Some(Reason::ResourceExhausted),
            // Something before the agent speaks; what became of the call nobody can say.
            502..=504 => Some(Reason::Unavailable),
            _ => None,
        };
        let by_grpc = || match self.grpc.as_deref()? {
            "UNAUTHENTICATED" => Some(Reason::Unauthenticated),
            "PERMISSION_DENIED" => Some(Reason::PermissionDenied),
            "INVALID_ARGUMENT" => Some(Reason::InvalidParams),
            "UNIMPLEMENTED" => Some(Reason::MethodNotFound),
            "NOT_FOUND" => Some(Reason::TaskNotFound),
            // The message itself is too much, and will be; or the answer to it.
            "RESOURCE_EXHAUSTED" if self.message.contains("Sent message larger than max") => Some(Reason::Internal),
            "RESOURCE_EXHAUSTED" if self.is_about_size() => Some(Reason::PayloadTooLarge),
            "RESOURCE_EXHAUSTED" => Some(Reason::ResourceExhausted),
            "UNAVAILABLE" => Some(Reason::Unavailable),
            _ => None,
        };
        named.or_else(by_rpc).or_else(by_http).or_else(by_grpc).unwrap_or(Reason::Internal)
    }
}

/// What FastAPI finds wrong with a body, each with its place.
fn violations(detail: &Value) -> Option<String> {
    let told = |one: &Value| {
        let place = one["loc"].as_array().into_iter().flatten().map(|step| match step.as_str() {
            Some(name) => name.to_owned(),
            None => step.to_string(),
        });
        let place: Vec<String> = place.collect();
        let words = one["msg"].as_str()?;
        Some(if place.is_empty() { words.to_owned() } else { format!("{}: {words}", place.join(".")) })
    };
    let all: Vec<String> = detail.as_array()?.iter().filter_map(told).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// The name the specification gives an error (spec 3.3.2, 9.5); our own reasons go by the code they share.
pub fn name_of(reason: Reason) -> &'static str {
    match reason.row().rpc {
        -32001 => "TaskNotFoundError",
        -32002 => "TaskNotCancelableError",
        -32003 => "PushNotificationNotSupportedError",
        -32004 => "UnsupportedOperationError",
        -32005 => "ContentTypeNotSupportedError",
        -32006 => "InvalidAgentResponseError",
        -32007 => "ExtendedAgentCardNotConfiguredError",
        -32008 => "ExtensionSupportRequiredError",
        -32009 => "VersionNotSupportedError",
        -32700 => "JSONParseError",
        -32600 => "InvalidRequestError",
        -32601 => "MethodNotFoundError",
        -32602 => "InvalidParamsError",
        _ => "InternalError",
    }
}

#[cfg(test)]
mod tests;
