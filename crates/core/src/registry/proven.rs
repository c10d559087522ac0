//! Agents whose cards were verified once: from then on nothing less will do for them, also after a restart.

use crate::error::Fault;
use crate::ports::Store;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// By the name of an agent, what its card was verified for: where it is, and whose signatures count there. An agent that
/// moves, or whose keys are others, begins anew.
pub struct Proven {
    store: Arc<dyn Store>,
    known: Mutex<HashMap<String, String>>,
}

impl Proven {
    pub async fn load(store: &Arc<dyn Store>) -> Result<Self, Fault> {
        let known = store.proven().await?.into_iter().collect();
        Ok(Self { store: Arc::clone(store), known: Mutex::new(known) })
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.known.lock().expect("no panic while holding what was verified")
    }

    pub fn holds(&self, agent: &str, place: &str) -> bool {
        self.known().get(agent).is_some_and(|known| known == place)
    }

    /// Kept before the card is used: whoever was shown a secret for its sake must not be another after a crash.
    pub async fn keep(&self, agent: &str, place: &str) -> Result<(), Fault> {
        if self.holds(agent, place) {
            return Ok(());
        }
        self.store.keep_proven(agent, Some(place)).await?;
        self.known().insert(agent.to_owned(), place.to_owned());
        Ok(())
    }

    /// An agent was removed. What the store has of it goes with it.
    pub fn forget(&self, agent: &str) {
        self.known().remove(agent);
    }

    /// Forgets all agents but these: the others are not there any more.
    pub async fn retain(&self, is_there: impl Fn(&str) -> bool) -> Result<(), Fault> {
        let gone: Vec<String> = self.known().keys().filter(|name| !is_there(name)).cloned().collect();
        for name in gone {
            self.store.keep_proven(&name, None).await?;
            self.forget(&name);
        }
        Ok(())
    }
}
