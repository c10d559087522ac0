//! A worker at its work: how that goes is remembered of the worker, whatever becomes of the task.

use super::judged::Went;
use super::run::RunHandle;
use super::{Hub, LiveRef};
use crate::dispatch::End;
use crate::fleet::contract::Contract;
use crate::fleet::outcome::Judge;
use crate::fleet::queue::Order;
use crate::registry::Agent;
use flotilla_protocol::a2a::model::TaskState;
use flotilla_protocol::time::Millis;
use flotilla_protocol::work::Assignment;
use std::sync::Arc;

impl Hub {
    /// Lets the worker work, and remembers how it went.
    pub(super) async fn work(self: &Arc<Self>, agent: &Arc<Agent>, mut work: Assignment, mut run: RunHandle) {
        // Whoever chose it, it is the worker that goes on with the work, and that a ring would come back to.
        work.lineage.here.agent.clone_from(&agent.name);
        let (live, number, deadline) = (run.live.clone(), run.run, work.lineage.deadline);
        let (turn, resumed) = (run.turn(), work.trail.resumed);
        if agent.link.dialed().is_none() {
            run.has_started();
        }
        run.goes_on_elsewhere(agent);
        if !work.trail.is_held() {
            work.max_cost_usd = self.money_left(agent, &run).await;
        }
        agent.link.run(work, run).await;
        let now = self.clock.now();
        let told = std::mem::take(&mut *turn.lock().expect("no panic while holding a turn"));
        let end = match told {
            Went::Ended(end) => Some(end),
            // It says nothing of the worker that it did not begin.
            Went::Nowhere => None,
            // The hub went first: that its worker did not find back in time is no failure of the worker's.
            Went::Unheard if resumed => None,
            // Its budget is its caller's.
            Went::Unheard if self.was_overspent(&live).await => None,
            Went::Unheard => lost(&live, number, deadline, now).then(|| End::Failed("the run was lost".to_owned())),
        };
        if let Some(end) = end {
            self.fleet.turned(&agent.name, end, now);
            self.look_at_workers();
            let (hub, name) = (Arc::clone(self), [agent.name.as_str().into()]);
            // Its place is not held for it.
            self.runtime.spawn(async move { hub.keep_workers(&name).await });
        }
    }
}

/// Who reads along with a worker's reports.
pub(super) fn judge(agent: &Agent, worker: Arc<str>, order: &Order, contract: &Contract) -> Box<Judge> {
    let mut judge = Judge::new(worker, Arc::clone(&order.dispatch), &contract.past);
    if agent.is_elsewhere() {
        judge.is_of_another();
    }
    Box::new(judge)
}

/// Whether a run ended without anybody having judged it, and not for want of time.
fn lost(live: &LiveRef, run: u32, deadline: Option<Millis>, now: Millis) -> bool {
    let late = deadline.is_some_and(|deadline| deadline <= now);
    live.committed().is_some_and(|head| head.run > run || head.state == TaskState::Failed) && !late
}
