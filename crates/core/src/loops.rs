//! Loops: safe to start at any time and any number of times. They take no input.

pub mod approval;
pub mod deadline;
pub mod fleet;
pub mod push;

use crate::hub::Hub;
use crate::ports::{Retention, Swept};
use flotilla_protocol::time::Millis;
use std::sync::Arc;
use std::time::Duration;

/// How long things are kept, relative to now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    pub tasks: Option<Duration>,
    pub tasks_max: Option<u64>,
    pub events: Option<Duration>,
    pub dedupe: Duration,
    pub dedupe_max: u64,
}

impl Default for Keep {
    fn default() -> Self {
        let dedupe = Duration::from_secs(24 * 3600);
        Self { tasks: None, tasks_max: None, events: None, dedupe, dedupe_max: 10_000_000 }
    }
}

impl Keep {
    fn as_of(&self, now: Millis) -> Retention {
        let before = |keep: Duration| Millis(now.0 - i64::try_from(keep.as_millis()).unwrap_or(i64::MAX / 2));
        Retention {
            tasks_before: self.tasks.map(before),
            tasks_max: self.tasks_max,
            events_before: self.events.map(before),
            dedupe_before: Some(before(self.dedupe)),
            dedupe_max: Some(self.dedupe_max),
        }
    }
}

/// Sweeps once, in bounded steps, until nothing is left to do.
pub async fn sweep(hub: &Arc<Hub>, keep: Keep) -> Result<Swept, crate::error::Fault> {
    let mut total = Swept::default();
    loop {
        let swept = hub.store().sweep(keep.as_of(hub.clock().now())).await?;
        total.tasks += swept.tasks;
        total.logs += swept.logs;
        total.sends += swept.sends;
        if swept == Swept::default() {
            return Ok(total);
        }
    }
}
