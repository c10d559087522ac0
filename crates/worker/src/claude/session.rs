//! Which conversation of Claude Code belongs to which context: named by the context, remembered once it was begun.

use crate::sessions;
use std::path::PathBuf;
use std::sync::Arc;
use uuid::Uuid;

/// The conversations of one agent.
#[derive(Debug)]
pub struct Sessions(Arc<sessions::Sessions>);

/// A conversation that nobody else speaks in as long as this is held.
pub struct Held {
    context: sessions::Held,
    pub id: Uuid,
    /// It was begun before, so it is resumed.
    pub is_known: bool,
}

impl Sessions {
    /// Without a file they are kept in memory only.
    pub fn open(file: Option<PathBuf>) -> Result<Self, String> {
        sessions::Sessions::open(file).map(Self)
    }

    /// Waits until no other run speaks in the caller's context. The name of a conversation follows from its context
    /// alone, as other A2A bridges of Claude Code have it; a second caller with the same context gets one of its own.
    pub async fn hold(&self, caller: &str, context: &str) -> Held {
        let held = self.0.hold(caller, context).await;
        let known = held.known.as_deref().and_then(|session| Uuid::try_parse(session).ok());
        let own = || {
            let plain = named(context);
            if self.0.is_taken(&plain.to_string()) { named(&format!("{context}\n{caller}")) } else { plain }
        };
        Held { context: held, id: known.unwrap_or_else(own), is_known: known.is_some() }
    }
}

impl Held {
    /// The conversation exists from now on.
    pub fn begun(&mut self) {
        self.is_known = true;
        self.context.begun(&self.id.to_string());
    }

    /// The program does not know the conversation any more.
    pub fn lost(&mut self) {
        self.is_known = false;
        self.context.lost();
    }
}

fn named(context: &str) -> Uuid {
    Uuid::new_v5(&Uuid::NAMESPACE_URL, format!("a2a:{context}").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::{Sessions, named};

    #[test]
    fn names_are_those_other_bridges_use() {
        assert_eq!(named("handshake:hermes-switch").to_string(), "4cd6f909-51b3-54ad-bf41-5948c6359c09");
    }

    #[tokio::test]
    async fn a_conversation_is_named_by_its_context_and_is_its_callers() {
        let sessions = Sessions::open(None).unwrap();
        let mut held = sessions.hold("1", "c").await;
        assert!(!held.is_known && held.id == named("c"));
        held.begun();
        let other = sessions.hold("2", "c").await;
        assert!(!other.is_known && other.id != held.id, "another caller's words name another conversation");
        drop(held);
        let mut held = sessions.hold("1", "c").await;
        assert!(held.is_known && held.id == named("c"));
        held.lost();
        assert!(!held.is_known);
    }
}
