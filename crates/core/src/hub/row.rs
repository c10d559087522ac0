//! Runs of agents that dial in come to their desks in the order of the commits that called for them.

use super::run::RunHandle;
use super::{Hub, LiveRef};
use crate::ids::AgentId;
use crate::map::IdMap;
use std::sync::Mutex;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Nobody waits longer for the run before it, which may wait for a disk.
const PATIENCE: Duration = Duration::from_secs(5);

/// For each such agent the last run that was called for: dropped once it is at the desk, or waits for something else.
#[derive(Default)]
pub(super) struct Rows(Mutex<IdMap<AgentId, oneshot::Receiver<()>>>);

/// The run before, if there is one to wait for.
pub(super) struct Before(Option<oneshot::Receiver<()>>);

impl Hub {
    /// Gives a run its place. Called where its commit is told, one after the other.
    pub(super) fn line_up(&self, live: &LiveRef, run: &mut RunHandle) -> Before {
        let agent = live.committed().and_then(|head| self.registry.load().by_id(head.agent).cloned());
        let Some(agent) = agent.filter(|agent| agent.link.dialed().is_some()) else { return Before(None) };
        let (starting, started) = oneshot::channel();
        run.starting = Some(starting);
        Before(self.rows.0.lock().expect("no panic while holding the rows").insert(agent.id, started))
    }
}

impl Before {
    pub(super) async fn has_started(self) {
        if let Some(started) = self.0 {
            // Nothing is ever sent: it is dropped.
            let _ = timeout(PATIENCE, started).await;
        }
    }
}
