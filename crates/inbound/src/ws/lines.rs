//! Lines to callers who are connected: where the news of tasks go that they began in another request.

use flotilla_core::held_bytes::Held;
use flotilla_core::ids::PrincipalId;
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

/// Which connections each caller has.
#[derive(Default)]
pub struct Lines(Mutex<HashMap<PrincipalId, Vec<Line>>>);

impl Lines {
    fn all(&self) -> MutexGuard<'_, HashMap<PrincipalId, Vec<Line>>> {
        self.0.lock().expect("no panic while holding the lines")
    }

    pub fn of(&self, principal: PrincipalId) -> Vec<Line> {
        self.all().get(&principal).cloned().unwrap_or_default()
    }

    pub fn add(self: &Arc<Self>, principal: PrincipalId, line: Line) -> Listed {
        self.all().entry(principal).or_default().push(line.clone());
        Listed { lines: Arc::clone(self), principal, line }
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
            lines.retain(|line| !line.same_channel(&self.line));
            if lines.is_empty() {
                all.remove(&self.principal);
            }
        }
    }
}
