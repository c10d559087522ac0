//! Alerts: the owner is told that nobody takes some work, and so is whoever follows the task.

use super::Hub;
use super::judged::counted;
use super::run::RunHandle;
use crate::fleet::reasons::Hindrance;
use crate::ids::TaskId;
use crate::notice::{Notice, What};
use crate::ports::Owed;
use crate::task::{Command, Head};
use flotilla_protocol::fleet::route::Step;
use metrics::counter;
use serde_json::json;
use std::sync::Arc;

impl Hub {
    /// Tells the owner that work is not taken.
    pub(super) async fn alert(self: &Arc<Self>, run: &RunHandle, hindrance: Hindrance) {
        let Hindrance { reason, detail, .. } = hindrance;
        let text = format!("No worker takes the work of task {} ({}): {detail}.", run.live.id(), reason.name());
        let Some(head) = run.live.committed() else { return };
        counter!("flotilla_alerts_total", "reason" => counted(&reason)).increment(1);
        tracing::warn!(task = %head.id, reason = reason.name(), "dispatched work is not taken by any worker");
        // Before the log says that the owner was told: what is kept only here is told after a restart.
        self.tell_people(&head, reason.name(), &text).await;
        let told = text.clone();
        // Whoever follows the task, or has its news pushed, hears it too.
        let held = || Command::Hold { run: run.run, reason: told.clone() };
        if self.route(run, Step::Alerted { reason, text }, None).await
            && let Err(error) = self.change(&run.live, held).await
        {
            tracing::error!(task = %head.id, %error, "an alert is not shown with its task");
        }
    }

    /// Tells an alert to whoever listens, and to notifiers, for whom it is kept until they have it.
    pub(super) async fn tell_people(&self, head: &Head, reason: &str, text: &str) {
        let at = self.clock.now();
        let agent = self.registry().by_id(head.agent).map(|agent| agent.name.clone());
        let body = json!({"type": "alert", "at": at, "taskId": head.id.to_string(), "agent": agent, "reason": reason,
            "text": text});
        let owed = Owed { id: TaskId::fresh(), at, task: head.id, body: body.to_string() };
        if let Err(fault) = self.store.owe(owed).await {
            tracing::error!(task = %head.id, %fault, "an alert is not kept, and no notifier is told");
        }
        let what = What::Alert { task: Some(head.id), reason: reason.into(), text: text.into() };
        self.notices.tell(Notice { at, owner: head.owner, agent: head.agent, what });
    }
}
