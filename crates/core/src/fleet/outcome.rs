//! What a worker's reports come to: the result it tells in any of its forms, checked, and the state that follows.

use super::schema;
use flotilla_protocol::a2a::model::{Artifact, Part, TaskState};
use flotilla_protocol::block::{Block, Kind as BlockKind};
use flotilla_protocol::fleet::dispatch::ReplySchema;
use flotilla_protocol::fleet::result::{BlockedReason, Status, Usage};
use flotilla_protocol::fleet::route::{Check, Standing, Step};
use flotilla_protocol::fleet::{
    Announce, Dispatch, Found, HANDSHAKE, Handshake, Kind, TaskResult, ending, read, version,
};
use flotilla_protocol::lineage;
use flotilla_protocol::wire::{AnyValue, Json, Object};
use flotilla_protocol::work::{Contents, Report};
use serde_json::{Value, json};
use std::sync::Arc;

/// The artifact a result is in, where the worker gave it no name of its own.
const RESULT: &str = "task-result";

/// Reads along with a worker's reports.
pub struct Judge {
    pub worker: Arc<str>,
    dispatch: Arc<Dispatch>,
    /// It was asked for its reply a second time: there is no third.
    asked_again: bool,
    result: Option<Box<TaskResult>>,
    /// What is wrong with a result it told, if that cannot be read.
    wrong: Option<String>,
    /// What it called the artifact with its result.
    artifact: Option<String>,
    /// The last JSON it made, and its last words.
    json: Option<Value>,
    said: String,
    usage: Option<Usage>,
}

/// What follows from reports.
#[derive(Debug, Clone, PartialEq)]
pub enum Ruling {
    /// They go on as they are.
    Pass(Vec<Report>),
    /// The work was not begun.
    Blocked(Box<TaskResult>),
    /// The reply was not what was asked for.
    Again(Vec<String>),
    /// The work is over: with these reports, this judgement, and, where it is the worker's fault, what went wrong.
    Over { reports: Vec<Report>, step: Step, fault: Option<String> },
}

/// What a part turned out to hold.
enum Held {
    Result(Box<TaskResult>),
    Announce(Box<Announce>),
    /// A result that cannot be read. It is content too, so that its owner sees what it was.
    Wrong(String),
    Content,
}

fn held(part: &Part) -> Held {
    let json = part.data.0.as_ref().map(Json::text);
    let found = match (json, part.text.as_deref()) {
        (Some(json), _) => read(json),
        (None, Some(text)) => ending(text),
        _ => Found::Nothing,
    };
    match found {
        Found::Handshake(Handshake::Result(result)) => Held::Result(result),
        Found::Handshake(Handshake::Announce(announce)) => Held::Announce(announce),
        Found::Wrong(problem) if problem.starts_with(Kind::Result.name()) => Held::Wrong(problem),
        _ => Held::Content,
    }
}

impl Judge {
    pub fn new(worker: Arc<str>, dispatch: Arc<Dispatch>, asked_again: bool) -> Self {
        Self {
            worker,
            dispatch,
            asked_again,
            result: None,
            wrong: None,
            artifact: None,
            json: None,
            said: String::new(),
            usage: None,
        }
    }

    /// Reads reports; what they come to, and what the worker announced in them.
    pub fn rule(&mut self, reports: Vec<Report>) -> (Ruling, Vec<Announce>) {
        let (mut passed, mut announced) = (Vec::new(), Vec::new());
        for report in reports {
            match report {
                Report::Note { blocks } => {
                    blocks.iter().filter(|block| block.kind() == BlockKind::Usage).for_each(|block| self.count(block));
                    passed.push(Report::Note { blocks });
                }
                Report::Artifact { artifact, contents, append, last_chunk, metadata } => {
                    let (parts, kept) = self.sift(&contents, &mut announced);
                    if self.result.is_some() && kept.is_empty() && !parts.is_empty() {
                        // What was said under the same name before stays what it is.
                        self.artifact = (!append).then(|| artifact.artifact_id.clone());
                        continue;
                    }
                    let contents = if kept.len() == parts.len() { contents } else { Contents::Parts(kept) };
                    passed.push(Report::Artifact { artifact, contents, append, last_chunk, metadata });
                }
                Report::Answer { contents, .. } => {
                    self.sift(&contents, &mut announced);
                    return (self.over(passed, TaskState::Completed, Some(contents)), announced);
                }
                Report::Status { state, contents, metadata } => {
                    if let Some(contents) = &contents {
                        self.sift(contents, &mut announced);
                    }
                    if state.is_terminal() && self.result.is_none() {
                        self.result = metadata.as_ref().and_then(|metadata| self.stopped_by(metadata));
                    }
                    if state.is_terminal() && state != TaskState::Canceled {
                        return (self.over(passed, state, contents), announced);
                    }
                    if state.is_interrupted() && self.result.is_some() {
                        return (self.over(passed, state, contents), announced);
                    }
                    passed.push(Report::Status { state, contents, metadata });
                }
                other @ (Report::Linked { .. } | Report::TookUp | Report::Received { .. }) => passed.push(other),
            }
        }
        (Ruling::Pass(passed), announced)
    }

    /// The parts there are, and those that are content. What a part says of the handshake is taken.
    fn sift(&mut self, contents: &Contents, announced: &mut Vec<Announce>) -> (Vec<Part>, Vec<Part>) {
        let parts = contents.parts();
        let mut kept = Vec::new();
        for part in &parts {
            match held(part) {
                Held::Result(result) => (self.result, self.wrong) = (Some(result), None),
                Held::Announce(announce) => announced.push(*announce),
                content @ (Held::Wrong(_) | Held::Content) => {
                    if let Held::Wrong(problem) = content {
                        self.wrong = Some(problem);
                    }
                    let json = part.data.0.as_ref().map(Json::text).or(part.text.as_deref());
                    if let Some(value) = json.and_then(|json| serde_json::from_str(bare(json)).ok()) {
                        self.json = Some(value);
                    }
                    if let Some(text) = &part.text {
                        self.said.clone_from(text);
                    }
                    kept.push(part.clone());
                }
            }
        }
        (parts, kept)
    }

    /// Adds up what the agent used, each kind for itself.
    fn count(&mut self, block: &Block) {
        let Ok(Value::Object(told)) = serde_json::from_str(block.json().text()) else { return };
        let number = |name: &str| told.get(name).and_then(Value::as_u64);
        let usage = self.usage.get_or_insert_with(Usage::default);
        let kinds = [
            (&mut usage.input_tokens, number("input_tokens")),
            (&mut usage.output_tokens, number("output_tokens")),
            (&mut usage.cache_read_tokens, number("cache_read_input_tokens").or(number("cache_read_tokens"))),
            (&mut usage.cache_write_tokens, number("cache_creation_input_tokens").or(number("cache_write_tokens"))),
        ];
        for (sum, more) in kinds {
            if let Some(more) = more {
                *sum = Some(sum.unwrap_or(0).saturating_add(more));
            }
        }
    }

    fn over(&mut self, mut passed: Vec<Report>, state: TaskState, contents: Option<Contents>) -> Ruling {
        let told = self.result.take();
        let inferred = told.is_none();
        let mut result = *told.unwrap_or_else(|| Box::new(self.inferred(state)));
        if result.status == Status::Blocked {
            return Ruling::Blocked(Box::new(result));
        }
        let mut checks = self.checks(&result, state);
        if self.dispatch.task.reply_schema == ReplySchema::Json && result.status != Status::Error {
            let violations = self.violations();
            if !violations.is_empty() && !self.asked_again && !state.is_interrupted() {
                return Ruling::Again(violations);
            }
            let (ok, detail) = (violations.is_empty(), violations.join("; "));
            checks.push(Check { name: "reply_schema".into(), ok, detail: detail.clone() });
            if !ok {
                (result.status, result.error) = (Status::Error, Some(format!("The reply is not valid: {detail}")));
            }
        }
        self.complete(&mut result);
        let state = match (result.status, state) {
            (Status::Error, _) | (_, TaskState::Failed) => TaskState::Failed,
            (_, state) if state.is_interrupted() => state,
            _ => TaskState::Completed,
        };
        let accepted = !inferred && checks.iter().all(|check| check.ok);
        let standing = if accepted { Standing::Accepted } else { Standing::Reported };
        passed.push(self.artifact(&result, standing, &checks));
        let fault = (inferred && state == TaskState::Failed).then(|| shortened(&self.said));
        let contents = contents.or_else(|| result.error.clone().map(Contents::text));
        passed.push(Report::Status { state, contents, metadata: None });
        let step = Step::Judged { worker: self.worker.to_string(), standing, checks };
        Ruling::Over { reports: passed, step, fault }
    }

    /// What kept an agent from going on, where it says no more than that: a usage limit, say.
    fn stopped_by(&self, metadata: &Object) -> Option<Box<TaskResult>> {
        let told: Value = serde_json::from_str(lineage::find_member(metadata, HANDSHAKE)?.text()).ok()?;
        let reason = BlockedReason::of(told["blocked_reason"].as_str()?);
        Some(Box::new(TaskResult {
            protocol_version: version::CURRENT,
            status: Status::Blocked,
            blocked_reason: Some(reason),
            detail: Some(shortened(&self.said)).filter(|said| !said.is_empty()),
            retryable: told["retryable"].as_bool(),
            retry_after: told["retry_after"].as_u64(),
            ..TaskResult::default()
        }))
    }

    /// What a worker's end comes to that said nothing of the kind.
    fn inferred(&self, state: TaskState) -> TaskResult {
        let mut result = TaskResult { inferred: true, protocol_version: version::CURRENT, ..TaskResult::default() };
        let said = shortened(&self.said);
        // Whoever means to tell how it went, and does so wrongly, is not taken to be done.
        if let Some(problem) = &self.wrong {
            (result.status, result.error) = (Status::Error, Some(format!("The result cannot be read: {problem}")));
            return result;
        }
        match state {
            TaskState::Rejected => {
                (result.status, result.blocked_reason) = (Status::Blocked, Some(BlockedReason::of("rejected")));
                result.detail = Some(said);
            }
            TaskState::Completed => result.detail = Some(said).filter(|said| !said.is_empty()),
            _ => {
                let error = if said.is_empty() { "The worker did not say why.".to_owned() } else { said };
                (result.status, result.error) = (Status::Error, Some(error));
            }
        }
        result
    }

    fn checks(&self, result: &TaskResult, state: TaskState) -> Vec<Check> {
        let mut checks = Vec::new();
        let mut check = |name: &str, ok: bool, detail: &str| {
            let detail = if ok { String::new() } else { detail.to_owned() };
            checks.push(Check { name: name.into(), ok, detail });
        };
        check("result", !result.inferred, "the worker sent no TASK_RESULT");
        if let (Some(wanted), Some(told)) = (&self.dispatch.task.task_id, &result.task_id) {
            check("task_id", wanted == told, "it is of another task_id");
        }
        let says_well = matches!(result.status, Status::Done | Status::Partial);
        check("state", !(says_well && state == TaskState::Failed), "the worker failed, and says it is done");
        // What a worker program looked at itself: each either holds or does not.
        if let Some(Value::Object(evidence)) = result.more.get("evidence") {
            for (name, held) in evidence {
                if let Some(held) = held.as_bool().or_else(|| held.get("ok").and_then(Value::as_bool)) {
                    check(name, held, "the worker's own check did not hold");
                }
            }
        }
        checks
    }

    /// What is wrong with the JSON that was asked for.
    fn violations(&self) -> Vec<String> {
        let Some(reply) = &self.json else { return vec!["the reply holds no JSON".into()] };
        match &self.dispatch.task.json_schema {
            Some(schema) => schema::violations(schema, reply),
            None => Vec::new(),
        }
    }

    /// The hub's own word on what a worker cannot be believed about.
    fn complete(&self, result: &mut TaskResult) {
        if self.dispatch.task.task_id.is_some() {
            result.task_id.clone_from(&self.dispatch.task.task_id);
        }
        let counted = self.usage.clone().or_else(|| result.usage.clone());
        let spent = counted.as_ref().and_then(Usage::total_tokens);
        if result.tokens_spent != spent {
            result.tokens_claimed = result.tokens_claimed.or(result.tokens_spent);
        }
        (result.tokens_spent, result.usage) = (spent, counted);
    }

    fn artifact(&self, result: &TaskResult, standing: Standing, checks: &[Check]) -> Report {
        let artifact_id = self.artifact.clone().unwrap_or_else(|| RESULT.into());
        let metadata = Object::of(&json!({HANDSHAKE: {"standing": standing, "checks": checks}})).ok();
        let artifact = Artifact { artifact_id, name: RESULT.into(), metadata, ..Artifact::default() };
        let contents = Contents::Parts(vec![result_part(result)]);
        Report::Artifact { artifact: Box::new(artifact), contents, append: false, last_chunk: true, metadata: None }
    }
}

fn result_part(result: &TaskResult) -> Part {
    let data = AnyValue(Json::of(result).ok());
    Part { data, media_type: Kind::Result.media_type().into(), ..Part::default() }
}

/// The reports that end work no worker took.
pub fn refused(dispatch: &Dispatch, reason: &BlockedReason, detail: &str, retryable: bool) -> Vec<Report> {
    let result = TaskResult {
        protocol_version: version::CURRENT,
        task_id: dispatch.task.task_id.clone(),
        status: Status::Blocked,
        blocked_reason: Some(reason.clone()),
        detail: Some(detail.to_owned()),
        retryable: Some(retryable),
        ..TaskResult::default()
    };
    let artifact = Artifact { artifact_id: RESULT.into(), name: RESULT.into(), ..Artifact::default() };
    let contents = Contents::Parts(vec![result_part(&result)]);
    let artifact = Box::new(artifact);
    let text = format!("No worker took the work ({}): {detail}.", reason.name());
    vec![
        Report::Artifact { artifact, contents, append: false, last_chunk: true, metadata: None },
        Report::Status { state: TaskState::Rejected, contents: Some(Contents::text(text)), metadata: None },
    ]
}

/// JSON without the fence people and models put around it.
fn bare(text: &str) -> &str {
    let text = text.trim();
    let Some(inner) = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")) else { return text };
    inner.strip_prefix("json").unwrap_or(inner).trim()
}

fn shortened(text: &str) -> String {
    text.trim().chars().take(2_000).collect()
}

#[cfg(test)]
mod tests;
