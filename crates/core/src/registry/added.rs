//! Where an agent's entry comes from, and those that were added while the hub runs, as they are kept.

use crate::ids::{PrincipalId, WorkspaceId};
use flotilla_protocol::time::Millis;
use std::sync::Arc;

/// Who put an agent into the registry, and so who may change it.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// The configuration; where in it, in words for whoever administers the hub.
    Configured(Arc<str>),
    /// The agent itself, when it first dialed in.
    Registered,
    /// Somebody over the API.
    Added(Arc<Added>),
}

impl Source {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Configured(_) => "configuration",
            Self::Registered => "socket",
            Self::Added(_) => "api",
        }
    }

    pub fn added(&self) -> Option<&Arc<Added>> {
        if let Self::Added(added) = self { Some(added) } else { None }
    }
}

/// An agent that was added over the API, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Added {
    pub name: String,
    pub owner: PrincipalId,
    /// Its owner's.
    pub workspace: WorkspaceId,
    /// A JSON object that says of it what an entry of the configuration would.
    pub settings: String,
    /// When it was added, and when it was last changed.
    pub at: Millis,
    pub changed_at: Millis,
}

/// How the registry is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keeping {
    /// How often agents elsewhere are looked at; zero only reads their cards again in time.
    pub check_every: std::time::Duration,
    /// Most agents that are added, in all and for one owner.
    pub most: usize,
    pub most_per_owner: usize,
    /// Secrets that those who add agents may name: `env:NAME` and `file:PATH`, where a `*` at the end stands for more.
    pub references: Vec<String>,
}

impl Default for Keeping {
    fn default() -> Self {
        Self {
            check_every: std::time::Duration::from_secs(60),
            most: 10_000,
            most_per_owner: 1_000,
            references: vec!["env:AGENT_*".into()],
        }
    }
}

impl Keeping {
    /// Whether a secret's place may be named. A way up would lead out of a directory that may be.
    pub fn may_name(&self, reference: &str) -> bool {
        let fits = |pattern: &str| match pattern.strip_suffix('*') {
            Some(start) => reference.starts_with(start),
            None => reference == pattern,
        };
        !reference.split('/').any(|step| step == "..") && self.references.iter().any(|pattern| fits(pattern))
    }
}

#[cfg(test)]
mod tests {
    use super::Keeping;

    #[test]
    fn only_listed_secrets_may_be_named() {
        let keeping = Keeping {
            references: vec!["env:AGENT_*".into(), "env:ONE".into(), "file:/run/agents/*".into()],
            ..Keeping::default()
        };
        for (reference, may) in [
            ("env:AGENT_FAR", true),
            ("env:ONE", true),
            ("env:ONES", false),
            ("env:FLOTILLA_SECRET_KEY", false),
            ("file:/run/agents/far", true),
            ("file:/run/agents/../secret.key", false),
            ("file:/etc/passwd", false),
        ] {
            assert_eq!(keeping.may_name(reference), may, "{reference}");
        }
    }
}
