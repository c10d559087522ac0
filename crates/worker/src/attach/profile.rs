//! What an agent is and has now: announced when it changes, and held against work that comes.

use crate::agent::{Agent, Outbox, Stop};
use crate::probe::mcp::Prober;
use crate::probe::mcp::definition::Definition;
use crate::probe::presence::Known;
use crate::probe::trial::Trials;
use crate::probe::{Seen, Sight, Subject, Watch};
use flotilla_protocol::fleet::Announce;
use flotilla_protocol::time::Millis;
use flotilla_protocol::work::Assignment;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::Notify;
use tokio::time::Instant;

/// What is looked at, and how.
#[derive(Debug, Clone)]
pub struct Looks {
    pub subject: Subject,
    pub prober: Prober,
    /// None for a program that cannot be asked what it is.
    pub known: Option<Arc<Known>>,
}

/// Who does an agent's work, found on this machine.
#[derive(Debug, Clone)]
pub struct Found {
    pub doer: Agent,
    /// None for an agent that is no program.
    pub looks: Option<Looks>,
    /// None where no probe turns are wanted.
    pub trials: Option<Arc<Trials>>,
}

impl Found {
    pub async fn work(&self, assignment: Assignment, outbox: Outbox, stop: Stop) {
        match &self.trials {
            None => self.doer.work(assignment, outbox, stop).await,
            Some(trials) => trials.watch(&self.doer, assignment, outbox, stop).await,
        }
    }
}

/// Looks for an agent's program and whatever it needs. An error says what is missing, for the agent's owner.
pub type Find = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Result<Found, String>> + Send>> + Send + Sync>;

/// What is known of an agent, the latest announcement, and the word that there may be something new to see.
#[derive(Default)]
pub struct Profile {
    known: Mutex<Knowledge>,
    pub look: Notify,
}

#[derive(Default)]
struct Knowledge {
    sight: Sight,
    watch: Watch,
    announced: Option<Announce>,
}

pub fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

impl Profile {
    fn known(&self) -> MutexGuard<'_, Knowledge> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was last announced; none before anything was seen.
    pub fn current(&self) -> Option<Announce> {
        self.known().announced.clone()
    }

    /// Takes in what a look has shown that began then.
    pub(super) fn saw(&self, began: Instant, seen: Seen) {
        self.known().sight.take(began, seen);
    }

    /// The MCP servers there are, as far as that was looked at.
    pub(super) fn servers(&self) -> Vec<String> {
        self.known().sight.names().cloned().collect()
    }

    pub(super) fn definition(&self, server: &str) -> Option<Definition> {
        self.known().sight.definition(server).cloned()
    }

    /// Announces an agent as it is known now; the number of that, which is another if something is new.
    pub fn announce(&self, name: &str, places: usize, found: Result<&Found, &str>) -> u64 {
        let mut known = self.known();
        let seen = announcement(name, places, found, &known.sight);
        let (announce, _) = known.watch.take(seen, u64::try_from(now().0).unwrap_or(0));
        known.announced = Some(announce.clone());
        announce.epoch.unwrap_or_default()
    }
}

/// What there is to announce of an agent that takes so many runs at once; of one that cannot work, why not.
fn announcement(name: &str, places: usize, found: Result<&Found, &str>, sight: &Sight) -> Announce {
    let mut seen = Announce::default();
    match found {
        Ok(Found { doer, looks: Some(looks), trials }) => {
            doer.announce(&mut seen);
            sight.fill(&looks.subject, &mut seen);
            trials.iter().for_each(|trials| trials.fill(&mut seen));
        }
        Ok(_) => {}
        Err(problem) => seen.session.broken = Some(problem.to_owned()),
    }
    seen.worker.agent_id = name.to_owned();
    seen.capabilities.max_concurrent = Some(u32::try_from(places).unwrap_or(u32::MAX));
    seen
}
