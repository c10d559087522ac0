//! The scout: finds agents elsewhere, and makes the way to one that is added.

use super::Later;
use crate::registry::{Added, Agent, Face, Signed, Visibility};
use flotilla_protocol::a2a::error::Refusal;

/// What a check of an agent elsewhere came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    pub face: Face,
    pub signed: Signed,
    /// What is wrong with its card, each with its place.
    pub findings: Vec<String>,
}

/// Why a check failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missed {
    /// In words for the agent's owner.
    pub problem: String,
    /// Its card cannot be read now, and somebody answers where it is called all the same.
    pub answers: bool,
}

/// What somebody who adds an agent says of it, once it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// All of it, as it is kept.
    pub settings: String,
    /// Whom it is to belong to, if that is said: `NAME` or `WORKSPACE/NAME`.
    pub owner: Option<String>,
    pub visibility: Visibility,
    /// Secrets it names: `env:NAME`, `file:PATH`.
    pub references: Vec<String>,
}

/// Where to look for an agent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Asked {
    pub url: String,
    /// What proves who asks, as JSON: the `auth` of an agent's settings.
    pub auth: Option<String>,
    /// Thumbprints of keys, or keys, one of which must have signed the card.
    pub pins: Vec<String>,
    /// What else is said of the agent, as JSON: its settings, as far as they are known.
    pub settings: Option<String>,
}

/// What was found there.
#[derive(Debug, Clone, PartialEq)]
pub struct Discovered {
    /// All that can be told of it: a JSON object.
    pub report: String,
    /// Settings with which the agent can be added: a JSON object. None if it cannot be called as it is.
    pub settings: Option<String>,
    /// Its card is verified.
    pub verified: bool,
}

/// Knows what the settings of an agent are, and calls addresses that callers name. It asks the guard before each call.
pub trait Scout: Send + Sync + 'static {
    /// Reads what an agent is to be from a JSON object, or what is to change about one that is kept (as RFC 7396 says);
    /// or says what is wrong with it.
    fn plan(&self, kept: Option<&str>, settings: &str) -> Result<Plan, Refusal>;

    /// Settings that are kept, as their owner may see them: a JSON object.
    fn shown(&self, settings: &str) -> String;

    /// Whether the addresses in settings that are kept may be called.
    fn judge(&self, settings: &str) -> Later<Result<(), Refusal>>;

    /// Makes the agent, whose number is not known yet. Nothing is called. If it is reached as the one `before` of its name
    /// is, it has the same link, and nothing that was learned of it is forgotten.
    fn build(&self, added: &Added, before: Option<&Agent>) -> Result<Agent, Refusal>;

    /// The card of an agent that is being added was found to be verified: from now on nothing less will do.
    fn proved(&self, added: &Added) -> Later<()>;

    /// An agent was removed: what was known of its card counts for no other of its name.
    fn forget(&self, name: &str);

    /// Secrets that an `auth` names.
    fn references(&self, auth: &str) -> Result<Vec<String>, Refusal>;

    /// Looks for an agent and its card.
    fn discover(&self, asked: Asked) -> Later<Result<Discovered, Refusal>>;
}
