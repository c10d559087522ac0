//! How agents elsewhere are reached.

/// How an agent elsewhere is reached, for the owner of the agent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reach {
    /// Where it was configured to be.
    pub address: String,
    /// The binding and version chosen from its card, once that was read.
    pub binding: Option<&'static str>,
    pub version: Option<String>,
    pub breaker: Breaker,
    /// Calls in a row that did not reach it.
    pub failures: u32,
    /// Why the last of them did not.
    pub problem: Option<String>,
    /// What proves to it who calls, by the place of the secret: never the secret.
    pub credential: Option<String>,
}

/// Whether calls are let through to an agent elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Breaker {
    #[default]
    Closed,
    /// None for a while: too many failed.
    Open,
    /// One, to see whether it is back.
    HalfOpen,
}

impl Breaker {
    pub fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half-open",
        }
    }

    /// The same for the metrics: the higher, the less is let through.
    pub fn level(self) -> u8 {
        match self {
            Self::Closed => 0,
            Self::HalfOpen => 1,
            Self::Open => 2,
        }
    }
}
