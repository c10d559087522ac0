//! A run in hand: what its agent said and was asked, until nothing of it is alive and nothing untold.

use super::ask::Questions;
use super::spool::{NotKept, Spool};
use flotilla_protocol::a2a::model::Message;
use flotilla_protocol::work::Report;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

/// A run, by its task and its number.
pub type Key = (String, u32);

/// A run in hand.
pub struct Hand {
    pub spool: Spool,
    pub stop: watch::Sender<bool>,
    /// Why it was stopped, if it was.
    pub reason: Option<String>,
    /// Something of it may be alive.
    pub working: bool,
    /// The number of the report that ended its turn.
    pub settled: Option<u64>,
    /// The hub wants nothing more of it.
    pub over: bool,
    /// What it says cannot be kept any more.
    pub full: bool,
    pub questions: Questions,
    /// Where what the caller says meanwhile goes, if the agent takes it up.
    pub more: Option<mpsc::Sender<Arc<Message>>>,
}

impl Hand {
    pub fn new(spool: Spool, stop: watch::Sender<bool>, more: Option<mpsc::Sender<Arc<Message>>>) -> Self {
        let questions = Questions::default();
        Self { spool, stop, reason: None, working: true, settled: None, over: false, full: false, questions, more }
    }

    /// What of this is told. What is said after the end of a run is nobody's. One that was asked to stop settles nothing any
    /// more: then it is still to be told that it is gone.
    pub fn heard(&self, mut reports: Vec<Report>) -> Vec<Report> {
        let (is_over, is_asked) = (self.over || self.full, *self.stop.borrow());
        let is_nobodys = |report: &Report| is_over || (is_asked && settles(report));
        reports.retain(|report| !is_nobodys(report));
        reports
    }

    pub fn keep(&mut self, reports: Vec<Report>, most: usize) -> Result<(), String> {
        if reports.is_empty() {
            return Ok(());
        }
        let settles = reports.iter().any(settles);
        match self.keep_all(reports, most) {
            Ok(()) => {
                // The last of them: what goes with it has to be told too.
                self.settled = self.settled.or_else(|| settles.then(|| self.spool.next_number() - 1));
                Ok(())
            }
            Err(problem @ NotKept::Full(_)) => Err(format!(
                "its worker ended it: {problem}; the hub was away too long, or the agent says too much (worker.buffer_bytes)"
            )),
            Err(problem) => Err(format!("its worker ended it: {problem}")),
        }
    }

    /// Together if they fit; otherwise one by one, as far as they do.
    fn keep_all(&mut self, reports: Vec<Report>, most: usize) -> Result<(), NotKept> {
        let size: usize = reports.iter().map(Report::size).sum();
        if reports.len() == 1 || (size < most / 2 && self.spool.has_room(2 * size)) {
            return self.spool.tell(reports, most);
        }
        reports.into_iter().try_for_each(|report| self.spool.tell(vec![report], most))
    }

    pub fn end(&mut self, reason: String) {
        self.reason.get_or_insert(reason);
        self.stop.send_replace(true);
    }
}

/// Lets go of a run of which nothing is alive, and nothing untold.
pub fn finish(hands: &mut BTreeMap<Key, Hand>, key: &Key) {
    if hands.get(key).is_some_and(|hand| !hand.working && (hand.over || hand.spool.is_empty()))
        && let Some(hand) = hands.remove(key)
    {
        tracing::info!(task = key.0, run = key.1, "a run is over");
        hand.spool.remove();
    }
}

/// Whether a turn is over with this.
fn settles(report: &Report) -> bool {
    match report {
        Report::Status { state, .. } => state.is_terminal() || state.is_interrupted(),
        Report::Answer { .. } => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{Hand, Report, Spool};
    use crate::attach::spool::Room;
    use flotilla_protocol::a2a::model::TaskState;
    use flotilla_protocol::work::Contents;

    fn said(state: TaskState) -> Report {
        Report::Status { state, contents: Some(Contents::text("x".repeat(400))), metadata: None }
    }

    #[test]
    fn a_turn_is_settled_with_the_last_report_of_it_and_by_none_that_is_not_kept() {
        let place = tempfile::tempdir().unwrap();
        let spool = Spool::create(place.path(), "t", 1, &Room::new(100_000)).unwrap();
        let mut hand = Hand::new(spool, tokio::sync::watch::channel(false).0, None);
        hand.keep(vec![said(TaskState::Working), said(TaskState::Completed)], 1_000).unwrap();
        assert_eq!(hand.settled, Some(2), "each went alone");
        hand.end("it was asked to stop".into());
        let heard = hand.heard(vec![said(TaskState::Working), said(TaskState::Completed)]);
        assert_eq!(heard, [said(TaskState::Working)], "what it said counts, and not that it is done");
        hand.full = true;
        assert!(hand.heard(heard).is_empty());
    }
}
