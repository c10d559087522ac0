//! What an agent says of a run that was ended over its head: it changes nothing but the ledger, for what was used was used.

use super::Hub;
use super::run::RunHandle;
use crate::caller::Scope;
use crate::error::Error;
use crate::fleet::settings::after;
use crate::fleet::spent::Spent;
use crate::ids::TaskId;
use crate::registry::Agent;
use crate::task::{Command, Head, Late, RunState};
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

/// How long after a task's end what its run used is booked.
const LATEST: Duration = Duration::from_secs(600);

impl RunHandle {
    /// Whether another run has taken its place, so that nothing it says counts at all.
    pub fn is_replaced(&self) -> bool {
        self.live.committed().is_some_and(|head| head.run > self.run)
    }

    /// The run was ended meanwhile: what it used, it used.
    pub(super) async fn late(&self, reports: &[Report]) {
        let worker = self.judge.as_ref().map(|judge| Arc::clone(&judge.worker));
        let agent = match &worker {
            Some(worker) => self.hub.registry().by_name(worker).cloned(),
            None => self.live.committed().and_then(|head| self.hub.registry().by_id(head.agent).cloned()),
        };
        let Some(agent) = agent else { return };
        if let Err(error) = self.hub.told_late(&agent, self.live.id(), Some(self.run), reports).await {
            tracing::error!(task = %self.live.id(), %error, "what a run used that was ended is not booked");
        }
    }
}

impl Hub {
    /// Books what reports tell of usage that come when their run is over, and was this agent's: the last one of its task, or
    /// one that was taken back. What was told before counts once: as a report whose number or id is known, or, without one,
    /// as a run that told.
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
        let received = reports.iter().find(|report| matches!(report, Report::Received { .. })).cloned();
        let blocks = match &received {
            Some(received) if knows(&record.changes, run, received) => return Ok(()),
            Some(_) if !blocks.is_empty() => blocks,
            None if !blocks.is_empty() && !spent.run_told() => blocks,
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
            number => known >= number,
        },
        _ => false,
    })
}
