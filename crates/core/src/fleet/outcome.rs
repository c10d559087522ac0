//! What a worker's reports come to: the result it tells in any of its forms, checked, and the state that follows.

mod begun;
mod beside;
mod checks;
mod evidence;
mod heard;
mod inferred;
mod kept;
mod recall;
mod told;

use super::contract::Past;
use super::own::Titles;
use super::spent::Spent;
use super::{own, schema};
use crate::budget;
use crate::dispatch::End;
use begun::Begun;
use flotilla_protocol::a2a::model::{Part, TaskState};
use flotilla_protocol::block::Block;
use flotilla_protocol::event::Change;
use flotilla_protocol::fleet::dispatch::ReplySchema;
use flotilla_protocol::fleet::result::Status;
use flotilla_protocol::fleet::route::{Check, Standing, Step};
use flotilla_protocol::fleet::told::ToldResult;
use flotilla_protocol::fleet::{Announce, Dispatch, HANDSHAKE, TaskResult};
use flotilla_protocol::hub_frame::refused;
use flotilla_protocol::usage::Usage;
use flotilla_protocol::wire::Object;
use flotilla_protocol::work::{Contents, Report};
use heard::{Heard, Held, Span, held};
use serde_json::json;
use std::sync::Arc;
use told::{Told, contradiction};

/// Reads along with a worker's reports.
pub struct Judge {
    pub worker: Arc<str>,
    dispatch: Arc<Dispatch>,
    /// It was asked for its reply a second time: there is no third.
    asked_again: bool,
    told: Told,
    /// What is wrong with a result it told, if that cannot be read.
    wrong: Option<String>,
    /// What it called the artifact with its result.
    artifact: Option<String>,
    heard: Heard,
    /// Results that cannot be read, for the owner's eyes.
    aside: Vec<Block>,
    /// Results that no last word has followed yet, likewise.
    noted: Vec<ToldResult>,
    /// What shows that its worker has begun.
    begun: Begun,
    titles: Titles,
    spent: Spent,
    /// Hard ceilings beside the contract's, with what was told when they were looked at; none if nobody can say.
    held: Option<Vec<budget::Held>>,
    counted: Usage,
}

/// What follows from reports.
#[derive(Debug, Clone, PartialEq)]
pub enum Ruling {
    /// They go on as they are.
    Pass(Vec<Report>),
    /// The work was not begun; what was noted on the way to that is kept.
    Blocked(Box<TaskResult>, Vec<Report>),
    /// The reply was not what was asked for; likewise.
    Again(Vec<String>, Vec<Report>),
    /// The work is over: with these reports, this judgement, and how its worker's turn ended.
    /// What it said is kept if that was, after it had begun, that it is blocked.
    Over { reports: Vec<Report>, step: Step, end: End, blocked: Option<Box<TaskResult>> },
}

impl Judge {
    pub fn new(worker: Arc<str>, dispatch: Arc<Dispatch>, past: &Past) -> Self {
        Self {
            worker,
            dispatch,
            asked_again: past.asked_again.is_some(),
            told: Told::default(),
            wrong: None,
            artifact: None,
            heard: Heard::default(),
            aside: Vec::new(),
            noted: Vec::new(),
            begun: Begun::before(past),
            titles: past.titles.clone(),
            spent: past.spent,
            held: Some(Vec::new()),
            counted: Usage::default(),
        }
    }

    /// Takes up what the runs before this one used, as their log says now.
    pub fn recount(&mut self, changes: &[Arc<Change>]) {
        self.spent.recount(changes.iter().flat_map(|change| &change.events));
    }

    fn read(&mut self, reports: Vec<Report>) -> (Ruling, Vec<Announce>) {
        let (mut passed, mut announced) = (Vec::new(), Vec::new());
        for report in reports {
            self.spent.report(&report);
            match report {
                artifact @ Report::Artifact { .. } => passed.extend(self.artifact(artifact, &mut announced)),
                Report::Answer { contents, metadata } => {
                    self.said(&contents, &mut announced);
                    self.told_beside(Some(&contents), metadata.as_ref());
                    self.gather();
                    return (self.over(passed, TaskState::Completed, Some(contents)), announced);
                }
                Report::Status { state, contents, metadata } => {
                    if let Some(contents) = &contents {
                        self.said(contents, &mut announced);
                    }
                    self.told_beside(contents.as_ref(), metadata.as_ref());
                    if state.is_terminal() || state.is_interrupted() {
                        self.gather();
                    }
                    let stopped = metadata.as_ref().filter(|_| state.is_terminal() && !self.told.is_some());
                    if let Some(stopped) = stopped.and_then(|metadata| self.stopped_by(metadata)) {
                        self.told.add(stopped, None, false);
                    }
                    if state.is_terminal() && state != TaskState::Canceled {
                        return (self.over(passed, state, contents), announced);
                    }
                    if state.is_interrupted() && self.told.is_some() {
                        return (self.over(passed, state, contents), announced);
                    }
                    if state == TaskState::Canceled {
                        self.canceled(&mut passed);
                    }
                    self.begun.said(contents.as_ref());
                    passed.push(Report::Status { state, contents, metadata });
                }
                Report::Note { blocks } => {
                    self.wrong = blocks.iter().find_map(refused::problem).or(self.wrong.take());
                    // The hub notes those, when it has checked what they hold.
                    let own: Vec<Block> = blocks.into_iter().filter(|block| ToldResult::of(block).is_none()).collect();
                    passed.extend((!own.is_empty()).then_some(Report::Note { blocks: own }));
                }
                other @ (Report::Linked { .. } | Report::TookUp | Report::Received { .. }) => passed.push(other),
            }
        }
        (Ruling::Pass(passed), announced)
    }

    /// What of an artifact is content. One that holds nothing but a result gives that its name.
    fn artifact(&mut self, report: Report, announced: &mut Vec<Announce>) -> Option<Report> {
        let Report::Artifact { artifact, contents, append, last_chunk, metadata } = report else { return Some(report) };
        let span = match (append, last_chunk) {
            (_, true) => Span::End,
            (false, false) => Span::Beginning,
            (true, false) => Span::Middle,
        };
        let (parts, kept) = self.sift(&contents, span, (Some(artifact.artifact_id.as_str()), append), announced);
        self.heard.artifact(&artifact.artifact_id, append, &kept);
        let has_result = self.told.is_some() || self.wrong.is_some();
        if has_result && kept.is_empty() && !parts.is_empty() {
            // What was said under the same name before stays what it is.
            self.artifact = (!append).then(|| artifact.artifact_id.clone());
            let here = self.noted.iter_mut().filter(|told| told.artifact == artifact.artifact_id);
            here.for_each(|told| told.alone = !append);
            return None;
        }
        self.titles.content(&artifact.artifact_id);
        // What was the name of a result is that of content now.
        self.artifact.take_if(|own| *own == artifact.artifact_id);
        if kept == parts {
            self.begun.made(&artifact.artifact_id);
        }
        let contents = if kept == parts { contents } else { Contents::Parts(kept) };
        Some(Report::Artifact { artifact, contents, append, last_chunk, metadata })
    }

    /// The parts there are, and what of them is content: all but results. An announcement stays, for it may be none.
    /// `place` is the artifact they are of, and whether they go on in it.
    fn sift(
        &mut self,
        contents: &Contents,
        span: Span,
        (place, append): (Option<&str>, bool),
        announced: &mut Vec<Announce>,
    ) -> (Vec<Part>, Vec<Part>) {
        let parts = contents.parts();
        let mut kept = Vec::new();
        for part in &parts {
            match held(part, span) {
                Held::Result(result, words) => {
                    if let Some(place) = place {
                        self.noted.push(ToldResult::new(place, !append, result.clone()));
                    }
                    self.told.add(result, place, !append);
                    self.begun.ends(place);
                    self.wrong = None;
                    self.heard.settle();
                    kept.extend((!words.is_empty()).then(|| Part { text: Some(words), ..part.clone() }));
                    continue;
                }
                Held::Announce(announce) => announced.push(*announce),
                Held::Wrong(problem, words) => {
                    let aside = refused::aside(part, &problem).filter(|_| place.is_some());
                    self.wrong = Some(problem);
                    if let Some(block) = aside {
                        self.aside.push(block);
                        kept.extend((!words.is_empty()).then(|| Part { text: Some(words), ..part.clone() }));
                        continue;
                    }
                }
                Held::Content => {}
            }
            kept.push(part.clone());
        }
        (parts, kept)
    }

    fn said(&mut self, contents: &Contents, announced: &mut Vec<Announce>) {
        let (_, kept) = self.sift(contents, Span::End, (None, false), announced);
        self.heard.message(&kept);
    }

    /// A result that was told in pieces is one when the worker has no more to say.
    fn gather(&mut self) {
        match self.heard.result() {
            (Held::Result(result, _), place) => {
                self.told.add(result, None, false);
                self.begun.ends(place);
                self.wrong = None;
            }
            (Held::Wrong(problem, _), _) => self.wrong = self.wrong.take().or(Some(problem)),
            (Held::Announce(_) | Held::Content, _) => {}
        }
    }

    fn over(&mut self, mut passed: Vec<Report>, state: TaskState, contents: Option<Contents>) -> Ruling {
        let told = self.told.take();
        let inferred = told.is_none();
        let (result, differs) = told.unwrap_or_else(|| (self.inferred(state), None));
        passed.extend(self.spent.result(&result));
        if result.status == Status::Blocked {
            let blocked = Box::new(result.with_a_word());
            let Some(how) = self.begun.shown(&self.spent, &blocked) else {
                return Ruling::Blocked(blocked, notes(passed));
            };
            let (result, check) = begun::broken_off(&blocked, how);
            let mut over = self.judge(passed, state, contents, (result, inferred, differs.or(Some(check))));
            if let Ruling::Over { blocked: said, .. } = &mut over {
                *said = Some(blocked);
            }
            return over;
        }
        self.judge(passed, state, contents, (result, inferred, differs))
    }

    /// What a result comes to, told or inferred.
    fn judge(
        &mut self,
        mut passed: Vec<Report>,
        state: TaskState,
        contents: Option<Contents>,
        (mut result, inferred, differs): (TaskResult, bool, Option<Check>),
    ) -> Ruling {
        let mut checks = self.checks(&result, state);
        checks.extend(differs);
        self.reconcile(&mut result, state);
        // A reply that misses what was asked for may be as good as can be: it is nothing against the worker.
        let mut missed = false;
        let wants_json = self.dispatch.task.reply_schema == ReplySchema::Json && !state.is_interrupted();
        if wants_json && result.status != Status::Error {
            let violations = self.violations(!inferred);
            // What is not finished may be no reply yet.
            let is_due = result.status != Status::Partial;
            if !violations.is_empty() && !self.asked_again && is_due {
                return Ruling::Again(violations, notes(passed));
            }
            let (ok, detail) = (violations.is_empty(), violations.join("; "));
            result.reply = self.heard.json().filter(|_| ok);
            checks.push(Check { name: "reply_schema".into(), ok, detail: detail.clone() });
            missed = !ok && is_due;
            if missed {
                (result.status, result.error) = (Status::Error, Some(format!("The reply is not valid: {detail}")));
            }
        }
        self.complete(&mut result);
        let missed = missed && state == TaskState::Completed;
        let state = match (result.status, state) {
            (Status::Error, _) | (_, TaskState::Failed | TaskState::Rejected) => TaskState::Failed,
            (_, state) if state.is_interrupted() => state,
            _ => TaskState::Completed,
        };
        let accepted = checks.iter().all(|check| check.ok);
        let standing = if accepted { Standing::Accepted } else { Standing::Reported };
        let metadata = Object::of(&json!({HANDSHAKE: {"standing": standing, "checks": checks}})).ok();
        passed.push(own::report(own::artifact(Some(self.titles.result(self.artifact.as_deref())), metadata), &result));
        let end = match state {
            TaskState::Failed if !missed && inferred => End::Failed(result.error.clone().unwrap_or_default()),
            TaskState::Failed if !missed => End::Unsuccessful,
            _ => End::Well,
        };
        let contents = contents.or_else(|| result.error.clone().map(Contents::text));
        passed.push(Report::Status { state, contents, metadata: None });
        let step = Step::Judged { worker: self.worker.to_string(), standing, checks };
        Ruling::Over { reports: passed, step, end, blocked: None }
    }

    /// What is wrong with the JSON that was asked for, beside a result or without one.
    fn violations(&self, has_result: bool) -> Vec<String> {
        let Some(reply) = &self.heard.json() else {
            let place = if has_result { "; write it before the TASK_RESULT, not into it" } else { "" };
            return vec![format!("the reply holds no JSON{place}")];
        };
        match &self.dispatch.task.json_schema {
            Some(schema) => schema::violations(schema, reply),
            None => Vec::new(),
        }
    }

    /// Of a result and a state that speak against each other the worse counts: what did not end well is not done.
    fn reconcile(&self, result: &mut TaskResult, state: TaskState) {
        let ends_badly = state.is_terminal() && state != TaskState::Completed && result.status != Status::Error;
        if let Some(contradiction) = contradiction(result.status, state).filter(|_| ends_badly) {
            let mut error = format!("The worker contradicts itself: {contradiction}.");
            if !self.heard.last().trim().is_empty() {
                error = format!("{error} Its last words: {}", shortened(self.heard.last()));
            }
            (result.status, result.error) = (Status::Error, Some(error));
        }
    }

    /// The hub's own word on what a worker cannot be believed about.
    fn complete(&self, result: &mut TaskResult) {
        result.task_id.clone_from(&self.dispatch.task.task_id);
        evidence::claimed(result);
        self.spent.write(result);
    }
}

/// Of a run that is tried again only what is for the owner stays.
fn notes(passed: Vec<Report>) -> Vec<Report> {
    passed.into_iter().filter(|report| matches!(report, Report::Note { .. })).collect()
}

fn shortened(text: &str) -> String {
    text.trim().chars().take(2_000).collect()
}

#[cfg(test)]
mod tests;
