//! The start of a run: what it is about is read, and then it is done.

use super::queue::RunPlace;
use super::run::{Given, RunHandle, Start, nth_asked};
use super::{Hub, LiveRef};
use crate::error::Fault;
use crate::steady::steady;
use crate::task::Head;
use flotilla_protocol::time::Millis;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Hub {
    /// Starts the work a commit called for. Called where the commit was made, so it only hands over.
    pub(super) fn start_run(self: &Arc<Self>, live: &LiveRef, start: Start, place: Option<RunPlace>) {
        let mut handle = self.handle(live, start.run, place);
        handle.resumed = start.resumed;
        self.runtime.spawn(steady(async move {
            let given = handle.hub.assignment(&handle.live, start).await;
            work(given, handle, start).await;
        }));
    }

    /// The same for what was under way before, with an agent that dials in: when this is over, the run is at the agent's
    /// desk. So those that are started one after the other are there in that order.
    pub(super) async fn start_at_desk(self: &Arc<Self>, live: &LiveRef, start: Start, place: Option<RunPlace>) {
        let mut handle = self.handle(live, start.run, place);
        handle.resumed = start.resumed;
        let given = self.assignment(live, start).await;
        let mut work = work(given, handle, start);
        // Nothing is waited for before the run is at the desk.
        let begun = poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await;
        if begun.is_pending() {
            self.runtime.spawn(work);
        }
    }

    /// When the message was sent that a run is about, or is to be.
    pub(super) async fn asked_at(&self, live: &LiveRef, head: &Head) -> Result<Millis, Fault> {
        let turn = head.turn - head.waiting;
        if turn <= 1 {
            return Ok(head.created_at);
        }
        let asked = nth_asked(&self.log_of(live).await?, turn as usize - 1).map(|(at, _)| at);
        Ok(asked.unwrap_or(head.created_at))
    }
}

fn work(given: Result<Option<Given>, Fault>, mut handle: RunHandle, start: Start) -> Work {
    Box::pin(async move {
        let hub = Arc::clone(&handle.hub);
        match given {
            Ok(Some((agent, assignment, Some(contract)))) => hub.attend(contract, agent, assignment, handle).await,
            Ok(Some((agent, assignment, None))) => hub.plainly(agent, assignment, handle, start).await,
            Ok(None) => Box::pin(handle.fail("the agent is not configured on this hub any more")).await,
            Err(fault) => Box::pin(handle.fail(&format!("the task could not be read back: {fault}"))).await,
        }
    })
}
