//! Why a run of an agent elsewhere ends without the agent's own word, told to callers without its address.

use super::breaker::LeftAlone;
use crate::client::error::{ClientError, name_of};
use flotilla_protocol::a2a::error::Reason;
use flotilla_protocol::a2a::model::TaskState;
use std::net::IpAddr;

/// How a run ends.
#[derive(Debug)]
pub enum End {
    /// Somebody else ended it.
    Fenced,
    Failed(Failure),
    /// The agent took the work up and cannot be asked about it. It may go on, and is not told to stop.
    Lost(Failure),
    /// The agent refused to stream, and has begun nothing.
    Unstreamed(ClientError),
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
            ClientError::Refused { .. } if error.is(Reason::InvalidAgentResponse) => {
                let name = name_of(Reason::InvalidAgentResponse);
                Self::new(format!("The answer of the agent '{agent}' cannot be used ({name}): {problem}"), detail)
            }
            ClientError::TooLarge { .. } | ClientError::NotJson { .. } | ClientError::Id(_) => {
                let name = name_of(Reason::InvalidAgentResponse);
                Self::new(format!("The answer of the agent '{agent}' cannot be used ({name}): {problem}"), detail)
            }
            // Nobody was asked: its card says so.
            ClientError::Refused { code: None, .. } if error.is(Reason::VersionNotSupported) => {
                Self::new(format!("The agent '{agent}' cannot be called: {problem}"), detail)
            }
            ClientError::Refused { reason, .. } if error.redirect().is_none() => {
                let refuses = [
                    Reason::ContentTypeNotSupported,
                    Reason::UnsupportedOperation,
                    Reason::InvalidParams,
                    Reason::ExtensionSupportRequired,
                ];
                // The message is at fault, if only by its size.
                let state = match error.is_about_size() || refuses.into_iter().any(|reason| error.is(reason)) {
                    true => TaskState::Rejected,
                    false => TaskState::Failed,
                };
                let name = name_of(*reason);
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

    pub fn garbage(agent: &str, problem: &str) -> Self {
        let name = name_of(Reason::InvalidAgentResponse);
        let text = format!("The answer of the agent '{agent}' cannot be used ({name}): {problem}");
        Self::new(text.clone(), text)
    }

    pub fn left_alone(agent: &str, left: &LeftAlone) -> Self {
        let LeftAlone { failures, problem, wait } = left;
        let again =
            if wait.is_zero() { "now, by another call".to_owned() } else { format!("in {} s", wait.as_secs() + 1) };
        let text = format!(
            "The agent '{agent}' cannot be reached, and is left alone for now: {failures} tries in a row failed. It is \
             tried again {again}."
        );
        Self::new(text.clone(), format!("{text} The last problem: {problem}"))
    }
}

/// The problem without where it is, and without what its operator is to do about it: that is the owner's to know.
pub fn bare(error: &ClientError) -> String {
    let problem = match error {
        ClientError::Unreachable { url, problem } | ClientError::Unconnected { url, problem } => {
            return without_places(problem, host(url));
        }
        ClientError::Broken(problem) => return without_places(&format!("the connection broke: {problem}"), None),
        ClientError::NoToken { .. } => "what its token server answers cannot be read".into(),
        ClientError::Untrusted { .. } => "its certificate is not accepted".into(),
        ClientError::CardNotFound { .. } => "its card is not where it should be".into(),
        ClientError::CardInvalid { .. } | ClientError::NoInterface(_) => "its card cannot be used".into(),
        ClientError::Id(_) => "task.id cannot stand in an address".into(),
        ClientError::Address { .. } | ClientError::AddressWithPassword { .. } | ClientError::Setting(_) => {
            "its settings at this hub do not work".into()
        }
        other => match other.redirect() {
            Some(status) => format!("HTTP {status}: it redirects calls elsewhere"),
            None => other.to_string(),
        },
    };
    without_addresses(&problem)
}

/// Words that hold an address are left out.
fn without_addresses(text: &str) -> String {
    let word = |word: &str| if word.contains("://") { "[address]".to_owned() } else { word.to_owned() };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// The same for words of our own, which may hold a place in any form: a name that is known, a number, one with a port.
fn without_places(text: &str, host: Option<&str>) -> String {
    let is_place = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '[' | ']'));
        let bare = word.trim_start_matches('[').trim_end_matches(']');
        let named = word.rsplit_once(':').filter(|(name, port)| !name.is_empty() && port.parse::<u16>().is_ok());
        let has_port = named.is_some_and(|(name, _)| name.contains(['.', ']']) || name == "localhost");
        word.contains("://") || has_port || bare.parse::<IpAddr>().is_ok() || host.is_some_and(|host| host == word)
    };
    let word = |word: &str| if is_place(word) { "[address]".to_owned() } else { word.to_owned() };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// The host of an origin.
fn host(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    Some(rest.rsplit_once(':').map_or(rest, |(host, _)| host))
}

impl From<Failure> for End {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

#[cfg(test)]
mod tests {
    use super::bare;
    use crate::client::error::ClientError;

    #[test]
    fn callers_are_not_told_where_an_agent_is() {
        let url = "http://agent.internal:9000".to_owned();
        for (problem, told) in [
            ("Connection refused (os error 111)", "Connection refused (os error 111)"),
            (
                "agent.internal cannot be called: the address 10.0.0.7 is private",
                "[address] cannot be called: the address [address] is private",
            ),
            (
                "tcp connect to 10.0.0.7:9000, [fe80::1]:9000 or localhost:80 failed",
                "tcp connect to [address] [address] or [address] failed",
            ),
            ("see http://10.0.0.7/x", "see [address]"),
            ("error: 3 of 5, at 12:30", "error: 3 of 5, at 12:30"),
        ] {
            let (url, problem) = (url.clone(), problem.to_owned());
            assert_eq!(bare(&ClientError::Unconnected { url, problem }), told);
        }
        let broken = ClientError::Broken("10.0.0.7:9000 reset the stream".into());
        assert_eq!(bare(&broken), "the connection broke: [address] reset the stream");
    }
}
