//! What a worker says of its runs: numbered reports, and that nothing of a run is left.

use super::connection::{Connection, Manner, say};
use flotilla_core::error::Error;
use flotilla_core::ids::TaskId;
use flotilla_core::roster::{NoRun, Unheard};
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::model::Message;
use flotilla_protocol::hub_frame;
use flotilla_protocol::hub_frame::worker::{Gone, MoreFrame, Told, Untaken, kept};
use std::sync::Arc;
use tokio::sync::oneshot;

impl Connection {
    pub(super) async fn told(&mut self, told: Told) -> Result<(), Error> {
        let Told { task_id, run, number, reports } = told;
        let task = TaskId::parse(&task_id).ok_or_else(|| Refusal::no_task(&task_id))?;
        if let Some(next) = self.place()?.session.misses(task, run, number) {
            let text = format!("Report {next} of the run is missing: numbers begin with 1, and rise by one.");
            self.end_untaken(Untaken { task_id, run, number }, &Refusal::invalid("number", text)).await;
            return Ok(());
        }
        let place = self.place()?;
        let answer = match place.session.report_numbered(task, run, number, reports).await {
            Ok(answer) => Ok(answer),
            // Of a run that is not at the desk only what it used counts.
            Err(Unheard(reports)) => {
                self.app.hub.told_late(&place.agent, task, Some(run), &reports).await?;
                Err(NoRun)
            }
        };
        self.acknowledge(answer, (task_id, run, number));
        Ok(())
    }

    /// A report that cannot be taken ends its run: without it, the rest would be another result. False if it is none, or
    /// no worker's.
    pub(super) async fn refuse_report(&mut self, bytes: &[u8], refusal: &Refusal) -> bool {
        let Some(untaken) = Untaken::read(bytes).filter(|_| self.manner == Manner::Worker) else { return false };
        self.end_untaken(untaken, refusal).await;
        true
    }

    async fn end_untaken(&mut self, untaken: Untaken, refusal: &Refusal) {
        self.say(untaken.frame(refusal));
        let (Some(task), Some(place)) = (TaskId::parse(&untaken.task_id), &self.place) else { return };
        let failure = vec![untaken.failure(refusal)];
        let answer = place.session.report_numbered(task, untaken.run, untaken.number, failure).await;
        let outgoing = self.outgoing.clone();
        tokio::spawn(async move {
            if let Ok(answer) = answer {
                let _ = answer.await;
            }
            say(&outgoing, kept(&untaken.task_id, untaken.run, untaken.number, true)).await;
        });
    }

    pub(super) async fn gone(&mut self, gone: Gone) -> Result<(), Error> {
        let Gone { task_id, run, number, reason } = gone;
        let task = TaskId::parse(&task_id).ok_or_else(|| Refusal::no_task(&task_id))?;
        let reason: String = reason.chars().take(2_000).collect();
        let answer = self.place()?.session.gone(task, run, reason).await;
        self.acknowledge(answer, (task_id, run, number));
        Ok(())
    }

    /// Once it is kept, and not before. Of a run that is over, or not there, at once.
    fn acknowledge(&mut self, answer: Result<oneshot::Receiver<bool>, NoRun>, (task, run, number): (String, u32, u64)) {
        let Ok(answer) = answer else {
            self.say(kept(&task, run, number, true));
            return;
        };
        let outgoing = self.outgoing.clone();
        tokio::spawn(async move {
            let over = !matches!(answer.await, Ok(true));
            say(&outgoing, kept(&task, run, number, over)).await;
        });
    }

    /// What a caller says to an agent that takes it up; only a worker says of one that it does.
    pub(super) fn more(task: TaskId, run: u32, message: Arc<Message>) -> Vec<String> {
        vec![MoreFrame { task_id: task.to_string(), run, message }.frame()]
    }

    /// A run the peer says it has is over, or was never its own: a worker is told to end it. Others learn that from what
    /// they say next.
    pub(super) fn not_theirs(&mut self, task: &str, run: Option<u32>) {
        if let (Manner::Worker, Some(run)) = (self.manner, run) {
            self.say(hub_frame::cancel(task, run));
        }
    }
}
