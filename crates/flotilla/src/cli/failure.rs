//! Why a command failed, in the form the a2a-cli specification gives: a code, a sentence, a next step, an exit status.

use super::output::aside;
use super::output::escape_controls;
use flotilla_outbound::client::error::{ClientError, Code, name_of};
use flotilla_outbound::net::address::shown_in;
use flotilla_protocol::a2a::error::Reason;
use flotilla_protocol::v03;
use serde_json::{Value, json};

/// The failures that are this program's own (its Appendix D).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Local {
    Usage,
    CardNotFound,
    CardInvalid,
    Unreachable,
    CredentialsMissing,
    AuthFailed,
    Timeout,
    Internal,
}

impl Local {
    fn code(self) -> &'static str {
        match self {
            Self::Usage => "A2ACLI_ERR_USAGE",
            Self::CardNotFound => "A2ACLI_ERR_CARD_NOT_FOUND",
            Self::CardInvalid => "A2ACLI_ERR_CARD_INVALID",
            Self::Unreachable => "A2ACLI_ERR_UNREACHABLE",
            Self::CredentialsMissing => "A2ACLI_ERR_CREDENTIALS_MISSING",
            Self::AuthFailed => "A2ACLI_ERR_AUTH_FAILED",
            Self::Timeout => "A2ACLI_ERR_TIMEOUT",
            Self::Internal => "A2ACLI_ERR_INTERNAL",
        }
    }

    fn exit(self) -> u8 {
        match self {
            Self::Usage => 2,
            Self::CardNotFound | Self::Unreachable => 3,
            Self::CredentialsMissing | Self::AuthFailed => 4,
            Self::Timeout => 5,
            Self::CardInvalid | Self::Internal => 1,
        }
    }
}

/// Codes of our own, for what neither the protocol nor the specification names; they must not look like theirs.
const EXHAUSTED: &str = "FLOTILLA_ERR_RESOURCE_EXHAUSTED";
const UNVERIFIED: &str = "FLOTILLA_ERR_CARD_UNVERIFIED";
const INTERRUPTED: &str = "FLOTILLA_ERR_INTERRUPTED";

#[derive(Debug, Clone)]
pub struct Failure {
    code: String,
    message: String,
    hint: Option<String>,
    a2a_code: Option<Code>,
    pub exit: u8,
    /// Said already.
    silent: bool,
}

impl Failure {
    pub fn new(kind: Local, message: impl Into<String>) -> Self {
        let (code, exit) = (kind.code().to_owned(), kind.exit());
        let hint = match kind {
            Local::Usage => Some("--help after the command lists what it takes".to_owned()),
            Local::Internal => Some("--debug shows what was sent and answered".to_owned()),
            _ => None,
        };
        Self { code, message: shown_in(&message.into()), hint, a2a_code: None, exit, silent: false }
    }

    /// Somebody had enough; what was begun goes on.
    pub fn interrupted(message: impl Into<String>) -> Self {
        Self { code: INTERRUPTED.to_owned(), exit: 130, ..Self::internal(message) }
    }

    /// A card that must be signed by a certain key, and is not.
    pub fn unverified(message: impl Into<String>) -> Self {
        Self { code: UNVERIFIED.to_owned(), ..Self::internal(message) }
    }

    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Local::Usage, message)
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Local::Internal, message)
    }

    /// Ends the program with a status and no more words.
    pub fn silent(exit: u8) -> Self {
        Self { exit, silent: true, ..Self::internal("") }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(shown_in(&hint.into()));
        self
    }

    /// One more next step.
    #[must_use]
    pub fn and_hint(self, hint: &str) -> Self {
        let before = self.hint.clone().filter(|before| !(before.contains("--debug") && hint.starts_with("--debug")));
        let Some(before) = before.map(|before| format!("{before}; ")).or(self.hint.is_none().then(String::new)) else {
            return self;
        };
        self.hint(format!("{before}{hint}"))
    }

    /// The same with what was known before, and with the command to go on with, if it is not there already.
    #[must_use]
    pub fn and_then(mut self, known: &str, command: &str) -> Self {
        self.message = shown_in(&format!("{}; {known}", self.message.trim_end_matches('.')));
        match self.hint.as_ref().is_some_and(|hint| hint.contains(&shown_in(command))) {
            true => self,
            false => self.and_hint(&format!("go on with: {command}")),
        }
    }

    /// The same, where some files were written before it.
    #[must_use]
    pub fn after_files(mut self, count: usize) -> Self {
        if count > 0 {
            self.message = format!("{}; {count} of the files were saved before that", self.message);
        }
        self
    }

    /// The same, with the commands of its hint made for the agent that was called.
    #[must_use]
    pub fn addressed(mut self, command: impl Fn(&str) -> String) -> Self {
        for words in ["task list", "task get", "card get"] {
            let whole = command(words);
            let made = |hint: String| hint.replace(&format!("flotilla {words} shows"), &format!("{whole} shows"));
            self.hint = self.hint.map(made);
        }
        self
    }

    pub fn is(&self, kind: Local) -> bool {
        self.code == kind.code()
    }

    /// Whether an agent refused for this reason.
    pub fn is_refused(&self, reason: Reason) -> bool {
        self.code == name_of(reason)
    }

    /// Whether an agent refused, under a name of the protocol.
    pub fn is_protocol(&self) -> bool {
        !self.code.contains("_ERR_")
    }

    /// The error envelope.
    pub fn envelope(&self) -> Value {
        let a2a_code = match &self.a2a_code {
            Some(Code::Number(number)) => json!(number),
            Some(Code::Name(name)) => json!(name),
            None => Value::Null,
        };
        json!({"error": {"code": self.code, "message": self.message, "hint": self.hint, "a2aCode": a2a_code}})
    }

    /// Tells a program on standard output, a person on standard error.
    pub fn tell(&self, as_json: bool) {
        if self.silent {
            return;
        }
        if as_json {
            super::output::failed(&self.envelope().to_string());
            return;
        }
        let mut text = format!("Error: {}\nMessage: {}", self.code, self.message.replace('\n', "\n  "));
        if let Some(hint) = &self.hint {
            text.push_str(&format!("\nHint: {hint}"));
        }
        aside!("{}", escape_controls(&text));
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let message = error.to_string();
        match error {
            // What servers of HTTPS say to HTTP.
            ClientError::CardNotFound { reference, problem }
                if reference.starts_with("http://") && problem.starts_with("HTTP 400") =>
            {
                let hint = format!("if it speaks TLS, name it so: {}", reference.replacen("http://", "https://", 1));
                Self::new(Local::CardNotFound, message).hint(hint)
            }
            ClientError::CardNotFound { .. } => Self::new(Local::CardNotFound, message).hint(
                "--agent-card takes a host, the whole URL of a card (.../.well-known/agent-card.json), or a file",
            ),
            ClientError::Address { .. } => {
                Self::usage(message).hint("an address is http:// or https://, a host, and what comes after it")
            }
            ClientError::AddressWithPassword { .. } => Self::usage(message).hint(
                "leave it out of the address, and set A2ACLI_BEARER or A2ACLI_API_KEY if the agent wants one of them; \
                 HTTP Basic is not spoken",
            ),
            ClientError::CardInvalid { .. } => Self::new(Local::CardInvalid, message)
                .hint("whoever runs the agent has to mend its card; a card that is right can be named as a file"),
            ClientError::Untrusted { advice, .. } => Self::new(Local::Unreachable, message).hint(advice),
            ClientError::NoToken { .. } => Self::new(Local::Unreachable, message)
                .hint("whoever runs the agent's login server has to say where tokens are given"),
            ClientError::Unreachable { .. } | ClientError::Unconnected { .. } | ClientError::Broken(_) => {
                Self::new(Local::Unreachable, message)
                    .hint("check the address and that the agent runs; --debug shows what was sent")
            }
            ClientError::CredentialsMissing { code, withheld, .. } => {
                let failure = Self { a2a_code: code, ..Self::new(Local::CredentialsMissing, message) };
                match withheld.is_empty() {
                    true => failure.hint(
                        "set A2ACLI_BEARER or A2ACLI_API_KEY, or sign in with: flotilla auth login --client-id ID",
                    ),
                    false => failure.hint(format!(
                        "yours is not sent, because its card declares no scheme that takes {}: whoever runs the agent \
                         has to declare one; a card that does can be named as a file",
                        withheld.join(" or ")
                    )),
                }
            }
            ClientError::AuthFailed { code, .. } => {
                let failure = Self { a2a_code: Some(code), ..Self::new(Local::AuthFailed, message) };
                failure
                    .hint("flotilla config show says which credential is used; flotilla doctor looks at the hub's keys")
            }
            ClientError::Refused { reason, code, .. } => {
                let name = name_of(reason);
                let hint = next_step(name, &message);
                Self { code: name.to_owned(), a2a_code: code, ..Self::internal(message) }.hint(hint)
            }
            ClientError::NotJson { .. } => {
                let name = name_of(Reason::InvalidAgentResponse);
                let hint = next_step(name, &message);
                Self { code: name.to_owned(), ..Self::internal(message) }.hint(hint)
            }
            ClientError::Exhausted { code, retry, .. } => {
                let failure = Self { code: EXHAUSTED.to_owned(), a2a_code: code, ..Self::internal(message) };
                let when = retry.unwrap_or_else(|| "in a while".to_owned());
                failure.hint(format!("the agent takes no more for now: try again {when}, with fewer calls at once"))
            }
            ClientError::NoInterface(_) => {
                Self::internal(message).hint("flotilla card get shows what the agent's card offers")
            }
            ClientError::TooLarge { .. } => Self::internal(message).hint(
                "the agent has done what it was asked; read less of it: task get --history 0 ID, or task list with a \
                     smaller --page-size",
            ),
            ClientError::Id(_) | ClientError::Setting(_) => Self::usage(message),
        }
    }
}

const PUBLIC_CARD: &str = "flotilla card get without --extended shows the public card";

/// What to do about a refusal, by its name in the protocol; `told` is what it says.
fn next_step(name: &str, told: &str) -> &'static str {
    match name {
        "TaskNotFoundError" => "flotilla task list shows your tasks; look at the id, and that the agent is the same",
        "TaskNotCancelableError" => "the task is past canceling; flotilla task get shows how it ended",
        "PushNotificationNotSupportedError" => "wait with task get --wait, or follow with task subscribe",
        "UnsupportedOperationError" if told.contains("no extended card") => PUBLIC_CARD,
        "UnsupportedOperationError" => "flotilla card get shows what the agent can do; task get reads any task",
        "ContentTypeNotSupportedError" => {
            "flotilla card get shows the agent's input modes; --media-type sets a part's type"
        }
        "ExtendedAgentCardNotConfiguredError" => PUBLIC_CARD,
        "ExtensionSupportRequiredError" => "if you know the extension, name it: --svc-param A2A-Extensions:URI",
        "VersionNotSupportedError" if told.ends_with("this program 0.3 here") => {
            "leave out --a2a-version to speak 1.x with the agent; flotilla card get shows what it speaks"
        }
        "VersionNotSupportedError" if told.contains(v03::VERSION) => {
            "flotilla card get shows what the agent speaks; --a2a-version 0.3 speaks 0.3 with it, and 1.x is spoken without"
        }
        "VersionNotSupportedError" => {
            "flotilla card get shows what the agent speaks; whoever runs it may have an interface for A2A 1.0 too"
        }
        _ if told.contains("HTTP 413") => "the agent takes no message of this size; send large files as --file URL",
        "InvalidParamsError" | "InvalidRequestError" => {
            "the message names what is wrong; --debug shows the whole request"
        }
        _ => "--debug shows what was sent and answered",
    }
}
