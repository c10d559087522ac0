//! The two ways an operation fails: the caller's problem and ours.

use flotilla_protocol::a2a::error::Refusal;

/// Our problem. Logged once with its chain; the caller hears only an incident id.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct Fault(pub String);

impl Fault {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    #[error("refused: {}", .0.message)]
    Refused(Refusal),
    #[error("failed: {0}")]
    Failed(#[from] Fault),
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
