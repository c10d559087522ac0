//! A connection of an agent, as whoever serves it holds it.

use super::desk::{Desk, Reported};
use crate::ids::TaskId;
use flotilla_protocol::a2a::model::Message;
use flotilla_protocol::work::{Assignment, Report};
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::{Notify, mpsc, oneshot};

/// A run for the agent to take.
#[derive(Debug, Clone)]
pub struct Delivery {
    pub task: TaskId,
    /// How often it was sent, this time included: more than once, it may be known already.
    pub attempt: u32,
    pub work: Arc<Assignment>,
}

/// What a connection is to do.
#[derive(Debug, Clone)]
pub enum Order {
    Deliver(Delivery),
    /// The run is over for the hub; the agent need not go on. `theirs` is what it calls the task, if it has said so.
    Stop {
        task: TaskId,
        run: u32,
        theirs: String,
    },
    /// The agent had the run before it was cut off: what became of it?
    Resume {
        task: TaskId,
        run: u32,
    },
    /// The caller said something while the run is under way.
    Say {
        task: TaskId,
        run: u32,
        message: Arc<Message>,
    },
    /// It has acknowledged nothing, and what it was sent may never be: has it arrived?
    AskArrival,
    /// Another connection has taken the place of this one.
    Leave,
}

/// No such run: it is over, or was never this agent's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoRun;

/// The same of what was said of it, which is given back.
#[derive(Debug, Clone, PartialEq)]
pub struct Unheard(pub Vec<Report>);

/// Held as long as the connection is open. What it was sent and did not take is sent again when it is dropped.
pub struct Session {
    desk: Arc<Desk>,
    id: u64,
    line: u64,
    token: String,
    wake: Arc<Notify>,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.desk.close(self.id);
    }
}

impl Session {
    pub(super) fn new(desk: Arc<Desk>, (id, line): (u64, u64), token: String, wake: Arc<Notify>) -> Self {
        Self { desk, id, line, token, wake }
    }

    #[cfg(test)]
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    pub fn desk(&self) -> &Arc<Desk> {
        &self.desk
    }

    /// The line of connections it is of (`Presence::line`).
    pub fn line(&self) -> u64 {
        self.line
    }

    /// What to show in order to go on after a cut.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The peer has its token: the one it came with is good no more.
    pub fn welcomed(&self) {
        self.desk.welcomed(self.id);
    }

    /// Waits for something to do. May be dropped while it waits.
    pub async fn order(&self) -> Order {
        loop {
            let mut woken = pin!(self.wake.notified());
            woken.as_mut().enable();
            if let Some(order) = self.desk.order(self.id) {
                return order;
            }
            woken.await;
        }
    }

    /// The agent has a run; without its number, the one that the task has now.
    pub fn taken(&self, task: TaskId, run: Option<u32>) -> Result<(), NoRun> {
        self.desk.taken(self.id, task, run).map(|_| ()).ok_or(NoRun)
    }

    /// The same, said by an agent that speaks of tasks alone: its caller may know now.
    pub async fn acknowledge(&self, task: TaskId, run: Option<u32>) -> Result<(), NoRun> {
        self.desk.knows_to_acknowledge(self.id);
        let to = self.desk.taken(self.id, task, run).ok_or(NoRun)?;
        let (kept, _) = oneshot::channel();
        let reported = Reported { reports: Vec::new(), acknowledged: true, gone: None, kept };
        to.send(reported).await.map_err(|_| NoRun)
    }

    /// What the agent says of a run. Waits while the store is behind; the answer says when it is kept, and whether.
    pub async fn report(
        &self,
        task: TaskId,
        run: Option<u32>,
        reports: Vec<Report>,
    ) -> Result<oneshot::Receiver<bool>, Unheard> {
        match self.desk.taken(self.id, task, run) {
            Some(to) => reported(&to, reports).await,
            None => Err(Unheard(reports)),
        }
    }

    /// Whether the agent has a run from another connection, and is to be asked what became of it; whoever learns so asks.
    pub fn is_to_be_asked(&self, task: TaskId, run: u32) -> bool {
        self.desk.is_to_be_asked(self.id, task, run)
    }

    /// All that was sent before it was asked has arrived.
    pub fn arrived(&self) {
        self.desk.arrived(self.id);
    }

    /// The connection is spoken to in frames of the hub's own.
    pub fn serve_frames(&self) {
        self.desk.serve_frames(self.id);
    }

    /// The connection is spoken to in requests.
    pub fn serve_requests(&self) {
        self.desk.serve_requests(self.id);
    }

    /// The connection is a worker's, which takes so many runs at once.
    pub fn serve_worker(&self, places: usize) {
        self.desk.serve_worker(self.id, places);
    }

    /// Its agent takes up what its caller says while a run is under way.
    pub fn takes_more(&self, task: TaskId, run: u32) {
        self.desk.set_more(task, run);
    }

    /// No more runs for this connection.
    pub fn drain(&self) {
        self.desk.drain(self.id);
    }

    /// The number of a worker's report that is missing before this one, if one is.
    pub fn misses(&self, task: TaskId, run: u32, number: u64) -> Option<u64> {
        self.desk.misses(task, run, number)
    }

    /// The same of a worker: one whose number was kept before changes nothing, and is told to be kept when that is so.
    pub async fn report_numbered(
        &self,
        task: TaskId,
        run: u32,
        number: u64,
        mut reports: Vec<Report>,
    ) -> Result<oneshot::Receiver<bool>, Unheard> {
        reports.push(Report::Received { number, id: String::new() });
        let Some(to) = self.desk.taken(self.id, task, Some(run)) else { return Err(Unheard(reports)) };
        match self.desk.receives(task, run, number) {
            Some(true) => {}
            Some(false) => reports.clear(),
            None => return Err(Unheard(reports)),
        }
        reported(&to, reports).await
    }

    /// A worker's word that nothing of a run is left.
    pub async fn gone(&self, task: TaskId, run: u32, reason: String) -> Result<oneshot::Receiver<bool>, NoRun> {
        let to = self.desk.taken(self.id, task, Some(run)).ok_or(NoRun)?;
        let (kept, told) = oneshot::channel();
        to.send(Reported { reports: Vec::new(), acknowledged: false, gone: Some(reason), kept })
            .await
            .map_err(|_| NoRun)?;
        Ok(told)
    }
}

async fn reported(to: &mpsc::Sender<Reported>, reports: Vec<Report>) -> Result<oneshot::Receiver<bool>, Unheard> {
    let (kept, told) = oneshot::channel();
    let reported = Reported { reports, acknowledged: false, gone: None, kept };
    to.send(reported).await.map_err(|unsent| Unheard(unsent.0.reports))?;
    Ok(told)
}
