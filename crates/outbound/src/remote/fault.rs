//! Why a run of an agent elsewhere ends without the agent's own word, told to callers without its address.

use super::breaker::LeftAlone;
use super::seen::Garbage;
use crate::client::error::{ClientError, name_of};
use flotilla_protocol::a2a::error::Reason;
use flotilla_protocol::a2a::model::TaskState;

/// How a run ends.
#[derive(Debug)]
pub enum End {
    /// Somebody else ended it.
    Fenced,
    Failed(Failure),
    /// The agent took the work up and cannot be asked about it. It may go on, and is not told to stop.
    Lost(Failure),
    /// Nobody knows what became of the message.
    Unknown(String),
}

/// A state to end in, and the words that go with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub state: TaskState,
    /// For callers.
    pub text: String,
    /// For the agent's owner, with its address.
    pub detail: String,
}

impl Failure {
    pub fn new(text: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { state: TaskState::Failed, text: text.into(), detail: detail.into() }
    }

    pub fn of(agent: &str, error: &ClientError) -> Self {
        let (problem, detail) = (bare(error), error.to_string());
        match error {
            ClientError::Refused { name, .. } if error.is(Reason::InvalidAgentResponse) => {
                Self::new(format!("The answer of the agent '{agent}' cannot be used ({name}): {problem}"), detail)
            }
            ClientError::TooLarge { .. } | ClientError::NotJson { .. } => {
                let name = name_of(Reason::InvalidAgentResponse);
                Self::new(format!("The answer of the agent '{agent}' cannot be used ({name}): {problem}"), detail)
            }
            ClientError::Refused { name, .. } => {
                let refuses = [
                    Reason::ContentTypeNotSupported,
                    Reason::UnsupportedOperation,
                    Reason::InvalidParams,
                    Reason::ExtensionSupportRequired,
                ];
                let state = match refuses.into_iter().any(|reason| error.is(reason)) {
                    true => TaskState::Rejected,
                    false => TaskState::Failed,
                };
                let text = format!("The agent '{agent}' refused the message ({name}): {problem}");
                Self { state, text, detail }
            }
            ClientError::AuthFailed { .. } | ClientError::CredentialsMissing { .. } => {
                let text = format!(
                    "The agent '{agent}' does not let this hub in. Its operator has to see to its credentials."
                );
                Self::new(text, detail)
            }
            error if error.is_passing() => {
                let text = format!("The agent '{agent}' cannot be reached ({problem}). Try again later.");
                Self::new(text, detail)
            }
            _ => Self::new(format!("The agent '{agent}' cannot be called: {problem}"), detail),
        }
    }

    pub fn garbage(agent: &str, Garbage(problem): &Garbage) -> Self {
        let name = name_of(Reason::InvalidAgentResponse);
        let text = format!("The answer of the agent '{agent}' cannot be used ({name}): {problem}");
        Self::new(text.clone(), text)
    }

    pub fn left_alone(agent: &str, left: &LeftAlone) -> Self {
        let LeftAlone { failures, problem, wait } = left;
        let again =
            if wait.is_zero() { "now, by another call".to_owned() } else { format!("in {} s", wait.as_secs() + 1) };
        let text = format!(
            "The agent '{agent}' is left alone: {failures} calls in a row did not reach it. It is tried again {again}."
        );
        Self::new(text.clone(), format!("{text} The last problem: {problem}"))
    }
}

/// The problem without where it is, and without what its operator is to do about it: that is the owner's to know.
pub fn bare(error: &ClientError) -> String {
    let problem = match error {
        ClientError::Unreachable { problem, .. } | ClientError::Unconnected { problem, .. } => problem.clone(),
        ClientError::Untrusted { .. } => "its certificate is not accepted".into(),
        ClientError::CardNotFound { .. } => "its card is not where it should be".into(),
        ClientError::CardInvalid { .. } | ClientError::NoInterface(_) => "its card cannot be used".into(),
        ClientError::Address { .. } | ClientError::AddressWithPassword { .. } | ClientError::Setting(_) => {
            "its settings at this hub do not work".into()
        }
        other => other.to_string(),
    };
    without_addresses(&problem)
}

/// Words that hold an address are left out.
fn without_addresses(text: &str) -> String {
    let word = |word: &str| if word.contains("://") { "[address]".to_owned() } else { word.to_owned() };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

impl From<Failure> for End {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}
