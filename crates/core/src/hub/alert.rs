//! Alerts: the owner is told that nobody takes some work, and so is whoever follows the task.

use super::Hub;
use super::judged::counted;
use super::run::RunHandle;
use crate::fleet::reasons::Hindrance;
use crate::notice::{Notice, What};
use crate::task::Command;
use flotilla_protocol::fleet::route::Step;
use metrics::counter;
use std::sync::Arc;

impl Hub {
    /// Tells the owner that work is not taken.
    pub(super) async fn alert(self: &Arc<Self>, run: &RunHandle, hindrance: Hindrance) {
        let Hindrance { reason, detail, .. } = hindrance;
        let text = format!("No worker takes the work of task {} ({}): {detail}.", run.live.id(), reason.name());
        let Some(head) = run.live.committed() else { return };
        counter!("flotilla_alerts_total", "reason" => counted(&reason)).increment(1);
        tracing::warn!(task = %head.id, reason = reason.name(), "dispatched work is not taken by any worker");
        let told: Arc<str> = text.as_str().into();
        let what = What::Alert { task: Some(head.id), reason: reason.name().into(), text: Arc::clone(&told) };
        self.notices.tell(Notice { at: self.clock.now(), owner: head.owner, agent: head.agent, what });
        // Whoever follows the task, or has its news pushed, hears it too.
        let held = || Command::Hold { run: run.run, reason: told.to_string() };
        if self.route(run, Step::Alerted { reason, text }, None).await
            && let Err(error) = self.change(&run.live, held).await
        {
            tracing::error!(task = %head.id, %error, "an alert is not shown with its task");
        }
    }
}
