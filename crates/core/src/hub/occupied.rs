//! Workers' places: taken by dispatched work and plain messages alike, and free when a run is over.

use super::Hub;
use super::resting::Admitted;
use super::run::{RunHandle, Start};
use crate::fleet::queue::Order;
use crate::registry::Agent;
use flotilla_protocol::work::Assignment;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

/// A run of a plain message that an agent has. Dropped, its place is free.
struct Occupied {
    hub: Arc<Hub>,
    agent: Arc<Agent>,
}

impl Hub {
    /// Does a run that is under no contract.
    pub(super) async fn plainly(
        self: &Arc<Self>,
        agent: Arc<Agent>,
        mut work: Assignment,
        run: RunHandle,
        start: Start,
    ) {
        let Some(Admitted { run, turn, waited }) = Box::pin(self.admitted(&agent, &mut work, run)).await else {
            return;
        };
        let is_new = !waited && (start.run == 1 || start.resumed);
        let Some(mut run) = Box::pin(self.affordable_again(run, &agent, is_new)).await else { return };
        self.fleet.occupy(&agent.name);
        let _place = Occupied { hub: Arc::clone(self), agent: Arc::clone(&agent) };
        if agent.link.dialed().is_none() {
            run.has_started();
        }
        run.goes_on_elsewhere(&agent);
        if !work.trail.is_held() {
            work.max_cost_usd = Box::pin(self.money_left(&agent, &run)).await;
        }
        let mut doing = agent.link.run(work, run);
        if let Some(turn) = turn {
            // Only then may the next one come: it is with the agent, or in its queue.
            let begun = poll_fn(|context| Poll::Ready(doing.as_mut().poll(context))).await;
            drop(turn);
            if begun.is_ready() {
                return;
            }
        }
        doing.await;
    }
}

impl Drop for Occupied {
    fn drop(&mut self) {
        self.hub.fleet.vacate(&self.agent.name, &self.hub.registry.load(), self.hub.clock.now());
    }
}

/// Gives a worker's place back when its work is over, however that came about.
pub(super) struct Release<'a> {
    pub hub: &'a Arc<Hub>,
    pub order: &'a Order,
}

impl Drop for Release<'_> {
    fn drop(&mut self) {
        let work = (self.order.task, self.order.run);
        self.hub.fleet.release(work, &self.hub.registry.load(), self.hub.clock.now());
    }
}
