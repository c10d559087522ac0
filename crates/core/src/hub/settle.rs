//! Hard ceilings at both ends of a run: past one, none is begun; and at its end what it used is looked at and booked in
//! one step.

use super::run::RunHandle;
use super::{Hub, LiveRef};
use crate::budget::{Broke, EXHAUSTED};
use crate::dispatch::Choice;
use crate::fleet::contract::Contract;
use crate::fleet::reasons::Hindrance;
use crate::fleet::settings::after;
use crate::registry::Agent;
use crate::task::Head;
use flotilla_protocol::event::Event;
use flotilla_protocol::fleet::result::{BlockedReason, Status};
use flotilla_protocol::fleet::{HANDSHAKE, TaskResult};
use flotilla_protocol::lineage::find_member;
use flotilla_protocol::work::Report;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedMutexGuard;

impl RunHandle {
    /// Before a worker's last word is read, what is left under the hard ceilings it counts against. Until this is dropped,
    /// nobody else's is held against any; by then what it tells is in the ledger.
    pub(super) async fn settling(&mut self, reports: &[Report]) -> Option<OwnedMutexGuard<()>> {
        let judge = self.judge.as_mut().filter(|_| reports.iter().any(is_last))?;
        // Runs before it may have told meanwhile what they used.
        if let Some(changes) = if self.run > 1 { self.hub.log_of(&self.live).await.ok() } else { None } {
            judge.recount(&changes);
        }
        let (agent, head) = (self.hub.registry().by_name(&judge.worker).cloned()?, self.live.committed()?);
        if !self.capped && !self.hub.may_be_broke(head.origin.as_deref()) {
            return None;
        }
        let alone = Arc::clone(&self.hub.purses.settling).lock_owned().await;
        judge.hold(self.hub.hard_ceilings(&agent, &head, self.capped).await);
        Some(alone)
    }
}

impl Hub {
    /// The run, unless a hard ceiling it would count against is reached: then it ends here. `worker` is whom it is to go
    /// to, once that is known.
    pub(super) async fn affordable(
        self: &Arc<Self>,
        mut run: RunHandle,
        contract: &Contract,
        worker: Option<&Agent>,
    ) -> Option<RunHandle> {
        let head = run.live.committed()?;
        let Some(broke) = self.broke_for(worker, &head, run.capped).await else { return Some(run) };
        match broke.retry_after {
            // The day's is the worker's: another may have one.
            Some(seconds) if worker.is_some() => {
                run.blocked(TaskResult {
                    status: Status::Blocked,
                    blocked_reason: Some(BlockedReason::BudgetTooSmall),
                    detail: Some(broke.why()),
                    retryable: Some(true),
                    retry_after: Some(seconds),
                    ..TaskResult::default()
                })
                .await;
            }
            _ if contract.past.spent.total().is_none() => {
                let until = broke.retry_after.map(|seconds| after(self.clock.now(), Duration::from_secs(seconds)));
                let (reason, retryable) = (BlockedReason::BudgetTooSmall, until.is_some());
                // It is the hub that speaks, and no worker.
                run.judge = None;
                let hindrance = Hindrance { reason, detail: broke.why(), retryable, until };
                self.reject(run, contract, hindrance, Choice::default()).await;
            }
            _ => self.stop_begun(&mut run, &head, broke).await,
        }
        None
    }

    /// The same of a plain message's run, where it is not one that was looked at as it was asked for.
    pub(super) async fn affordable_again(
        self: &Arc<Self>,
        mut run: RunHandle,
        agent: &Agent,
        is_new: bool,
    ) -> Option<RunHandle> {
        let head = run.live.committed()?;
        if is_new {
            return Some(run);
        }
        let Some(broke) = self.broke_for(Some(agent), &head, false).await else { return Some(run) };
        self.stop_begun(&mut run, &head, broke).await;
        None
    }

    /// Whether a task was ended because a budget is used up.
    pub(super) async fn was_overspent(&self, live: &LiveRef) -> bool {
        let changes = match live.whole() {
            Some((_, changes)) => changes,
            None => self.whole_log(live.id()).await.unwrap_or_default(),
        };
        let ends = changes.iter().rev().flat_map(|change| change.events.iter().rev());
        let said = ends.into_iter().find_map(|event| match event {
            Event::Status { said, .. } => Some(said.as_ref()),
            _ => None,
        });
        let metadata = said.flatten().and_then(|said| said.message.metadata.as_ref());
        let told = metadata.and_then(|metadata| find_member(metadata, HANDSHAKE));
        told.is_some_and(|told| told.text().contains(EXHAUSTED))
    }

    async fn stop_begun(self: &Arc<Self>, run: &mut RunHandle, head: &Head, broke: Broke) {
        if let Err(error) = self.stop_spending(&run.live, head, broke.begun()).await {
            tracing::error!(task = %head.id, %error, "that a task's budget is used up is not recorded");
        }
        run.over = true;
    }
}

/// Whether a worker has said all it had to say.
fn is_last(report: &Report) -> bool {
    match report {
        Report::Answer { .. } => true,
        Report::Status { state, .. } => state.is_terminal() || state.is_interrupted(),
        _ => false,
    }
}
