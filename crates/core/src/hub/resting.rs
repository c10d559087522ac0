//! Messages without a contract for a worker that takes nothing new: they wait until it does, as for one that is away.

use super::run::RunHandle;
use super::trail::folded;
use super::{Hub, LiveRef};
use crate::fleet::Rest;
use crate::fleet::contract::{self, Carried};
use crate::fleet::settings::between;
use crate::ports::Absence;
use crate::project::Fold;
use crate::registry::Agent;
use crate::task::RunState;
use flotilla_protocol::a2a::model::TaskState;
use flotilla_protocol::a2a::request::SendMessageRequest;
use flotilla_protocol::work::Assignment;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;

/// No wait is longer: beyond this, a clock is of no use.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Whose turn it is to begin something with a worker. Given back once it is with the worker, so that what waited comes in
/// the order it was sent in.
pub(super) type Turn = Option<OwnedMutexGuard<()>>;

/// A run that may be begun with its worker.
pub(super) struct Admitted {
    pub run: RunHandle,
    pub turn: Turn,
    /// Others went on meanwhile.
    pub waited: bool,
}

impl Hub {
    /// Why a message would have to wait now: its agent is away, or takes nothing new. What belongs to a task under way,
    /// or is under a contract, does not wait for a worker's rest here.
    pub(super) fn absence(&self, agent: &Agent, request: &SendMessageRequest) -> Option<Absence> {
        if let Some(absence) = agent.link.absence() {
            return Some(absence);
        }
        let message = request.message.as_ref().filter(|message| message.task_id.is_empty())?;
        let rest = self.fleet.rest(&agent.name, &*self.clock)?;
        let carried = contract::carried(message, self.reads_texts(agent));
        let is_plain = !matches!(carried, Ok(Carried::Dispatch(_)));
        is_plain.then(|| Absence { reason: rest.reason, ttl: Some(self.patience_with(agent)) })
    }

    /// How long a message waits for a worker that takes nothing new, if it does not say so itself.
    fn patience_with(&self, agent: &Agent) -> Duration {
        agent.link.dialed().map_or_else(|| self.fleet.settings().wait, |terms| terms.ttl)
    }

    /// Whether a run that the last process left has yet to be begun with a worker that takes nothing new.
    pub(super) async fn still_waits(&self, live: &LiveRef, agent: Option<&Arc<Agent>>) -> bool {
        let is_unstarted = live.committed().is_some_and(|head| head.run_state == RunState::Claimed);
        let rests = |agent: &Arc<Agent>| self.fleet.rest(&agent.name, &*self.clock).is_some();
        is_unstarted && agent.is_some_and(rests) && self.is_held(live).await
    }

    /// Waits until the worker takes something new, if this is new to it. None if nothing is to be done any more.
    pub(super) async fn admitted(
        self: &Arc<Self>,
        agent: &Agent,
        work: &mut Assignment,
        mut run: RunHandle,
    ) -> Option<Admitted> {
        let trail = &work.trail;
        // What did not wait when the hub stopped was on its way to it, or is its own.
        let has_it = trail.linked || (trail.resumed && (trail.started || trail.stopping || !trail.waits));
        let Some(gate) = self.fleet.gate(&agent.name).filter(|_| work.turn <= 1 && !has_it) else {
            return Some(Admitted { run, turn: None, waited: false });
        };
        let ttl = work.ttl.map_or_else(|| self.patience_with(agent), |seconds| Duration::from_secs(seconds.into()));
        let expires = Instant::now() + ttl.min(LONGEST).saturating_sub(run.age(work.asked_at));
        let mut passed = pin!(async {
            let turn = gate.lock_owned().await;
            self.rested(agent).await;
            turn
        });
        // Its place in the order is taken before anything else is waited for.
        if let Poll::Ready(turn) = poll_fn(|context| Poll::Ready(passed.as_mut().poll(context))).await {
            if agent.link.dialed().is_none() {
                run.delivered();
            }
            return Some(Admitted { run, turn: Some(turn), waited: false });
        }
        run.has_started();
        let mut waits = self.is_held(&run.live).await;
        if !waits && let Some(rest) = self.fleet.rest(&agent.name, &*self.clock) {
            run.hold(&rest.reason).await;
            waits = true;
        }
        let turn = tokio::select! {
            biased;
            () = run.fenced() => return None,
            () = run.stopping() => { run.detach(); return None }
            turn = passed => turn,
            () = self.overdue(agent, expires) => {
                let seconds = ttl.as_secs();
                let text = format!("The worker took nothing new within {seconds} s, so the message was not delivered.");
                run.fail(&text).await;
                return None;
            }
        };
        if Instant::now() >= expires && agent.link.dialed().is_some() {
            // Its turn came all the same, and with that the time to take it.
            (work.asked_at, work.ttl) = self.to_be_taken();
        }
        work.trail.waits = false;
        if let Some(absence) = agent.link.absence() {
            run.hold(&absence.reason).await;
            work.trail.waits = true;
        } else {
            run.delivered();
            if waits {
                run.waits_no_more().await;
            }
        }
        Some(Admitted { run, turn: Some(turn), waited: true })
    }

    /// Waits until a message is too old, and its worker still takes nothing new. Behind others its turn comes.
    async fn overdue(&self, agent: &Agent, expires: Instant) {
        tokio::time::sleep_until(expires).await;
        while self.fleet.rest(&agent.name, &*self.clock).is_none() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Waits until nothing keeps a worker from taking something new.
    async fn rested(&self, agent: &Agent) {
        loop {
            let mut relieved = pin!(self.fleet.relieved());
            relieved.as_mut().enable();
            match self.fleet.rest(&agent.name, &*self.clock) {
                None => return,
                Some(Rest { until: None, .. }) => relieved.await,
                // Its reset may be told otherwise meanwhile.
                Some(Rest { until: Some(until), .. }) => {
                    let _ = tokio::time::timeout(between(self.clock.now(), until), relieved).await;
                }
            }
        }
    }

    /// Whether its caller was told already why the run waits.
    async fn is_held(&self, live: &LiveRef) -> bool {
        let changes = self.log_of(live).await.unwrap_or_default();
        let status = folded(Fold::default(), &changes).status;
        status.state == TaskState::Submitted && status.message.is_some()
    }
}
