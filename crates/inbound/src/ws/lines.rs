//! Lines to callers who are connected: where the news of tasks go that they began in another request.

use flotilla_core::caller::Caller;
use flotilla_core::held_bytes::Held;
use flotilla_core::ids::PrincipalId;
use flotilla_core::registry::Agent;
use flotilla_core::rights::Right;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::mpsc;

/// Takes frames to be written to a connection.
pub type Line = mpsc::Sender<Outgoing>;

/// A frame to be written, and what is held for it until then.
pub struct Outgoing {
    pub text: String,
    pub held: Option<Held>,
}

/// A frame that is small, and one of few.
impl From<String> for Outgoing {
    fn from(text: String) -> Self {
        Self { text, held: None }
    }
}

/// A caller's connection: what it may be told goes by the key it was opened with.
struct Connected {
    caller: Caller,
    line: Line,
}

/// Which connections each caller has.
#[derive(Default)]
pub struct Lines(Mutex<HashMap<PrincipalId, Vec<Connected>>>);

impl Lines {
    fn all(&self) -> MutexGuard<'_, HashMap<PrincipalId, Vec<Connected>>> {
        self.0.lock().expect("no panic while holding the lines")
    }

    /// The connections of a principal whose keys may read its tasks with an agent.
    pub fn readers(&self, principal: PrincipalId, agent: &Agent) -> Vec<Line> {
        let reads = |one: &&Connected| one.caller.rights.has(Right::TasksRead) && agent.is_seen_by(&one.caller);
        let all = self.all();
        let connected = all.get(&principal).into_iter().flatten();
        connected.filter(reads).map(|one| one.line.clone()).collect()
    }

    pub fn add(self: &Arc<Self>, caller: &Caller, line: Line) -> Listed {
        let connected = Connected { caller: caller.clone(), line: line.clone() };
        self.all().entry(caller.principal).or_default().push(connected);
        Listed { lines: Arc::clone(self), principal: caller.principal, line }
    }
}

/// A line, for as long as its connection is open.
pub struct Listed {
    lines: Arc<Lines>,
    principal: PrincipalId,
    line: Line,
}

impl Drop for Listed {
    fn drop(&mut self) {
        let mut all = self.lines.all();
        if let Some(lines) = all.get_mut(&self.principal) {
            lines.retain(|one| !one.line.same_channel(&self.line));
            if lines.is_empty() {
                all.remove(&self.principal);
            }
        }
    }
}
