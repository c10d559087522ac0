//! What callers are told while an agent that dials in says nothing: that there is a task, or that it waits, and why.

use super::desk::{Desk, Standing};
use crate::hub::RunHandle;
use crate::ids::TaskId;
use flotilla_protocol::work::Report;
use std::time::Duration;
use tokio::time::Instant;

/// How long an agent may still answer with a Message, and a run may wait behind others without a word.
const PATIENCE: Duration = Duration::from_secs(1);
const CROWDED: &str = "The agent is connected, and has not taken the messages before this one, which waits for it.";
const WENT_AWAY: &str = "The agent went away before it took the message, which waits for it.";

pub(super) struct Silence {
    /// Somebody looks at what comes, and has nothing to look at yet.
    watched: bool,
    /// Whether it was told once that the run waits.
    told: bool,
    /// The caller is told why the run waits, and not yet that it does no more.
    waits: bool,
    /// When it has lasted too long.
    pub over_at: Option<Instant>,
}

impl Silence {
    pub fn new(watched: bool, waits: bool) -> Self {
        Self { watched, told: false, waits, over_at: None }
    }

    /// The run stands so now. One that speaks in frames never answers with a Message, so there is a task at once.
    pub async fn look(&mut self, standing: Standing, desk: &Desk, task: TaskId, run: &RunHandle) {
        let at_hand = matches!(standing, Standing::Sent(_) | Standing::Taken(_));
        if at_hand && self.watched && desk.speaks_frames(task) {
            self.watched = false;
            run.open().await;
        }
        let waits = standing == Standing::Waiting && !self.told && desk.is_crowded();
        let listens = at_hand && self.watched && desk.takes_requests(task);
        self.over_at = (waits || listens).then(|| self.over_at.unwrap_or_else(|| Instant::now() + PATIENCE));
    }

    /// It has lasted too long: whoever looks is shown the task.
    pub async fn end(&mut self, standing: Standing, run: &mut RunHandle) {
        if standing == Standing::Waiting {
            (self.told, self.waits) = (true, true);
            return run.hold(CROWDED).await;
        }
        self.watched = false;
        run.open().await;
    }

    /// The run has to wait again.
    pub async fn again(&mut self, run: &mut RunHandle) {
        self.waits = true;
        run.hold(WENT_AWAY).await;
    }

    /// The agent was sent the run, or speaks of it: why it waited is over. A status that it tells says so by itself.
    pub async fn broken(&mut self, run: &mut RunHandle, reports: &[Report]) {
        run.delivered();
        let tells = reports.iter().any(|report| matches!(report, Report::Status { .. } | Report::Answer { .. }));
        if std::mem::take(&mut self.waits) && !tells {
            run.waits_no_more().await;
        }
    }
}
