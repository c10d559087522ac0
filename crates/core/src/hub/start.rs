//! The start of a run: what it is about is read, and then it is done.

use super::queue::RunPlace;
use super::run::{Given, RunHandle, Start, nth_asked};
use super::{Hub, LiveRef};
use crate::error::Fault;
use crate::steady::steady;
use crate::task::Head;
use flotilla_protocol::time::Millis;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Hub {
    /// Starts the work a commit called for. Called where the commit was made, so it only hands over.
    pub(super) fn start_run(self: &Arc<Self>, live: &LiveRef, start: Start, place: Option<RunPlace>) {
        let mut handle = self.handle(live, start.run, place);
        handle.resumed = start.resumed;
        let before = self.line_up(live, &mut handle);
        self.runtime.spawn(steady(async move {
            let given = handle.hub.assignment(&handle.live, start).await;
            before.has_started().await;
            work(given, handle, start).await;
        }));
    }

    /// The same for what was under way before, with an agent that dials in: when this is over, the run is at the agent's
    /// desk, or waits for something else. So those that are started one after the other are there in that order, and an
    /// agent that comes back and says that it has a run is believed. Nothing is waited for beyond `until`.
    pub(super) async fn start_at_desk(
        self: &Arc<Self>,
        live: &LiveRef,
        start: Start,
        place: Option<RunPlace>,
        until: Instant,
    ) {
        let mut handle = self.handle(live, start.run, place);
        handle.resumed = start.resumed;
        let (starting, started) = oneshot::channel();
        handle.starting = Some(starting);
        let given = self.assignment(live, start).await;
        self.runtime.spawn(work(given, handle, start));
        // Nothing is ever sent: it is dropped.
        let _ = timeout_at(until, started).await;
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
