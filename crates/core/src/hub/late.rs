//! What an agent says of a run that was ended over its head: it changes nothing but the ledger, for what was used was used.

use super::Hub;
use super::run::RunHandle;
use crate::caller::Scope;
use crate::error::Error;
use crate::fleet::settings::after;
use crate::fleet::spent::Spent;
use crate::ids::TaskId;
use crate::registry::Agent;
use crate::roster::Reported;
use crate::task::{Command, Head, Late, Retry, RunState};
use flotilla_protocol::a2a::model::TaskState;
use flotilla_protocol::block::Block;
use flotilla_protocol::event::{Change, Event};
use flotilla_protocol::fleet::route::Step;
use flotilla_protocol::fleet::{Found, Handshake, TaskResult, json, read};
use flotilla_protocol::time::Millis;
use flotilla_protocol::usage::Usage;
use flotilla_protocol::work::{Contents, Report};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// How long after a task's end what its run used is booked.
const LATEST: Duration = Duration::from_secs(600);
/// How long it may take to keep that a run was ended.
const KEPT_BY_THEN: Duration = Duration::from_secs(5);

impl RunHandle {
    /// Whether another run has taken its place, so that nothing it says counts at all.
    pub fn is_replaced(&self) -> bool {
        self.live.committed().is_some_and(|head| head.run > self.run)
    }

    /// The run was ended meanwhile: what it used, it used.
    pub(super) async fn late(&self, reports: &[Report]) {
        if used(reports).is_empty() && result(reports).is_none() {
            return;
        }
        // Its end is decided, and may not be kept yet.
        let _ = tokio::time::timeout(KEPT_BY_THEN, self.fenced()).await;
        let Some(latecomer) = self.latecomer() else { return };
        if self.ruled.is_none() {
            return latecomer.tells(reports).await;
        }
        // The result is the hub's word by now, and tells what all runs used; what this one did is noted beside it.
        let is_word = |report: &&Report| matches!(report, Report::Artifact { contents: Contents::Parts(_), .. });
        let told: Vec<Report> = reports.iter().filter(|report| !is_word(report)).cloned().collect();
        latecomer.tells(&told).await;
    }

    /// Who has the run, for what it says when that is over.
    pub fn latecomer(&self) -> Option<Latecomer> {
        let worker = self.ruled.as_ref().or(self.judge.as_ref().map(|judge| &judge.worker));
        let agent = match worker {
            Some(worker) => self.hub.registry().by_name(worker).cloned(),
            None => self.live.committed().and_then(|head| self.hub.registry().by_id(head.agent).cloned()),
        };
        Some(Latecomer { hub: Arc::clone(&self.hub), agent: agent?, task: self.live.id(), run: self.run })
    }

    /// Books what a result tells that was kept for the worker's last word, if the run was ended before that.
    pub(super) fn book_held(&mut self) {
        let Some(held) = self.judge.as_mut().and_then(|judge| judge.held()) else { return };
        if let Some(latecomer) = self.latecomer() {
            self.hub.runtime.spawn(async move { latecomer.tells(&[held]).await });
        }
    }
}

impl Drop for RunHandle {
    fn drop(&mut self) {
        if !self.is_current() {
            self.book_held();
            return;
        }
        if self.over {
            return;
        }
        let (hub, live, run) = (Arc::clone(&self.hub), self.live.clone(), self.run);
        self.hub.runtime.spawn(async move {
            let command = || Command::Lost { run, reason: "the agent broke off".to_owned(), retry: Retry::Never };
            if let Err(error) = hub.end(&live, command).await {
                tracing::error!(task = %live.id(), %error, "a lost run could not be recorded");
            }
        });
    }
}

/// Who had a run that is over, and may have more to say of it.
pub struct Latecomer {
    hub: Arc<Hub>,
    agent: Arc<Agent>,
    task: TaskId,
    run: u32,
}

impl Latecomer {
    pub async fn tells(&self, reports: &[Report]) {
        if let Err(error) = self.hub.told_late(&self.agent, self.task, Some(self.run), reports).await {
            tracing::error!(task = %self.task, %error, "what a run used that was ended is not booked");
        }
    }

    /// What was on its way to the run when it ended is booked in the order it came.
    pub(crate) fn takes_over(self, mut rest: mpsc::Receiver<Reported>) {
        rest.close();
        let runtime = self.hub.runtime.clone();
        runtime.spawn(async move {
            while let Some(Reported { reports, kept, .. }) = rest.recv().await {
                self.tells(&reports).await;
                // Whoever reported may be gone.
                let _ = kept.send(false);
            }
        });
    }
}

impl Hub {
    /// Books what reports tell of usage that come when their run is over, and was this agent's: the last one of its task, or
    /// one that was taken back. A report whose number or id is known counts once, and a result if the run told of no usage
    /// otherwise. What comes without either counts each time, unless the run had come to its own end.
    pub async fn told_late(
        self: &Arc<Self>,
        agent: &Agent,
        task: TaskId,
        run: Option<u32>,
        reports: &[Report],
    ) -> Result<(), Error> {
        let (blocks, result) = (used(reports), result(reports));
        if blocks.is_empty() && result.is_none() {
            return Ok(());
        }
        // One after the other: what comes twice at once is known the second time.
        let _alone = self.purses.late.lock().await;
        let Some(live) = self.find(Scope::Admin, task).await? else { return Ok(()) };
        let Some(record) = self.store.record(Scope::Admin, task).await? else { return Ok(()) };
        let head = &record.head;
        let run = run.unwrap_or(head.run);
        let ended = Ended::of(&record.changes, head, run).filter(|_| record.fold.is_none());
        let Some(Ended { at, worker, mut spent }) = ended else { return Ok(()) };
        let in_time = self.clock.now() <= after(at, LATEST);
        let is_doer = worker.map_or(head.agent == agent.id, |worker| worker == agent.name);
        if !in_time || !is_doer {
            return Ok(());
        }
        let was_stopped = run < head.run || matches!(head.state, TaskState::Canceled | TaskState::Failed);
        let received = reports.iter().find(|report| matches!(report, Report::Received { .. })).cloned();
        let blocks = match &received {
            Some(received) if knows(&record.changes, run, received) => return Ok(()),
            Some(_) if !blocks.is_empty() => blocks,
            None if !blocks.is_empty() && (was_stopped || !spent.run_told()) => blocks,
            _ => match result.and_then(|result| spent.result(&result)) {
                Some(Report::Note { blocks }) => blocks,
                _ => return Ok(()),
            },
        };
        let told = Late { run, worker: agent.name.clone(), blocks, received };
        self.change(&live, || Command::Late(told.clone())).await.map(|_| ())
    }
}

/// A run that is over.
struct Ended<'a> {
    at: Millis,
    /// The worker that had it, where that is not the agent its task was sent to.
    worker: Option<&'a str>,
    /// What was told in it.
    spent: Spent,
}

impl<'a> Ended<'a> {
    /// None if it is under way, or never was.
    fn of(changes: &'a [Arc<Change>], head: &Head, run: u32) -> Option<Self> {
        let mut ended = Self { at: head.status_at, worker: None, spent: Spent::default() };
        let is_over = run < head.run || (run == head.run && head.run_state == RunState::Idle);
        let mut is_it = false;
        for (at, event) in changes.iter().flat_map(|change| change.events.iter().map(|event| (change.at, event))) {
            match event {
                Event::RunQueued { run: queued } => {
                    ended.at = if *queued == run + 1 { at } else { ended.at };
                    is_it = *queued == run;
                }
                Event::Routed { run: of, step } if *of == run => match &**step {
                    Step::Assigned { worker, .. } | Step::Resumed { worker } => ended.worker = Some(worker),
                    _ => {}
                },
                Event::Noted { blocks, of: Some(earlier) } if earlier.run == run => {
                    ended.spent.report(&Report::Note { blocks: blocks.clone() });
                }
                Event::Noted { of: Some(_), .. } => {}
                event if is_it => ended.spent.event(event),
                _ => {}
            }
        }
        is_over.then_some(ended)
    }
}

/// The blocks that tell of usage.
fn used(reports: &[Report]) -> Vec<Block> {
    let blocks = reports.iter().filter_map(|report| match report {
        Report::Note { blocks }
        | Report::Artifact { contents: Contents::Blocks(blocks), .. }
        | Report::Status { contents: Some(Contents::Blocks(blocks)), .. }
        | Report::Answer { contents: Contents::Blocks(blocks), .. } => Some(blocks),
        _ => None,
    });
    blocks.flatten().filter(|block| Usage::of_blocks(std::slice::from_ref(*block)).reports > 0).cloned().collect()
}

/// The TASK_RESULT among them, if it tells of usage.
fn result(reports: &[Report]) -> Option<Box<TaskResult>> {
    let contents = reports.iter().filter_map(|report| match report {
        Report::Artifact { contents, .. } | Report::Answer { contents, .. } => Some(contents),
        Report::Status { contents, .. } => contents.as_ref(),
        _ => None,
    });
    let parts = contents.flat_map(Contents::parts);
    let texts = parts.filter_map(|part| json(&part).map(Cow::into_owned).or(part.text));
    let mut results = texts.filter_map(|text| match read(&text) {
        Found::Handshake(Handshake::Result(result)) => Some(result),
        _ => None,
    });
    results.find(|result| result.usage.is_some())
}

/// Whether a report is in the log of its run.
fn knows(changes: &[Arc<Change>], run: u32, report: &Report) -> bool {
    let Report::Received { number, id } = report else { return false };
    let mut events = changes.iter().flat_map(|change| &change.events);
    events.any(|event| match event {
        Event::Received { run: of, number: known, id: known_id } if *of == run => match number {
            0 => known_id == id,
            // Those of a run that was ended need not come in their order.
            number => known == number,
        },
        _ => false,
    })
}
