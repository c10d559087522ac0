//! Results in the hub's own words: of work that no worker took, and the form every result has in a task.

use super::contract::Past;
use super::reasons::Hindrance;
use flotilla_protocol::a2a::model::{Artifact, Part, TaskState};
use flotilla_protocol::event::Event;
use flotilla_protocol::fleet::result::{BlockedReason, EndedBy, Status};
use flotilla_protocol::fleet::{Dispatch, Kind, TaskResult, version};
use flotilla_protocol::time::Millis;
use flotilla_protocol::wire::{AnyValue, Json, Object};
use flotilla_protocol::work::{Contents, Report};
use std::collections::BTreeSet;

/// The artifact a result is in, where the worker gave it no name of its own.
const RESULT: &str = "task-result";

/// What the artifacts of a task are called, so that its result takes no other's place, and that of an older result.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Titles {
    result: Option<String>,
    /// Of all others, those a result could be called.
    taken: BTreeSet<String>,
}

impl Titles {
    pub fn event(&mut self, event: &Event) {
        let Event::Produced { chunk } = event else { return };
        let artifact = &chunk.artifact;
        if artifact.name == RESULT && artifact.parts.iter().any(is_result) {
            self.result = Some(artifact.artifact_id.clone());
        } else {
            self.content(&artifact.artifact_id);
        }
    }

    /// The worker calls something else so.
    pub fn content(&mut self, id: &str) {
        self.result.take_if(|result| result == id);
        if id.starts_with(RESULT) {
            self.taken.insert(id.to_owned());
        }
    }

    /// What a result is to be called: as one before it, as its worker calls it, or by a name that nothing else has.
    pub fn result(&self, own: Option<&str>) -> String {
        if let Some(known) = self.result.as_deref().or(own) {
            return known.to_owned();
        }
        let mut names = (2..).map(|number| format!("{RESULT}-{number}"));
        match self.taken.contains(RESULT) {
            true => names.find(|name| !self.taken.contains(name)).unwrap_or_default(),
            false => RESULT.to_owned(),
        }
    }
}

/// The part that holds a result.
pub fn part(result: &TaskResult) -> Part {
    let data = AnyValue(Json::of(result).ok());
    Part { data, media_type: Kind::Result.media_type().into(), ..Part::default() }
}

/// Whether a part holds a result, as the hub writes it.
fn is_result(part: &Part) -> bool {
    part.media_type == Kind::Result.media_type()
}

/// The artifact a result is in, without its parts.
pub fn artifact(id: Option<String>, metadata: Option<Object>) -> Artifact {
    Artifact { artifact_id: id.unwrap_or_else(|| RESULT.into()), name: RESULT.into(), metadata, ..Artifact::default() }
}

/// A report of it.
pub fn report(artifact: Artifact, result: &TaskResult) -> Report {
    let contents = Contents::Parts(vec![part(result)]);
    Report::Artifact { artifact: Box::new(artifact), contents, append: false, last_chunk: true, metadata: None }
}

/// The reports that end work no worker takes: it is refused, or, if it was begun, has failed.
pub fn refused(dispatch: &Dispatch, hindrance: &Hindrance, past: &Past, now: Millis) -> Vec<Report> {
    let Hindrance { reason, detail, retryable, until } = hindrance;
    let mut result = TaskResult {
        protocol_version: version::CURRENT,
        task_id: dispatch.task.task_id.clone(),
        retryable: Some(*retryable),
        retry_after: until.filter(|_| *retryable).map(|until| seconds(now, until)),
        ..TaskResult::default()
    };
    // Whoever found that it cannot do it may have used something until then.
    past.spent.write(&mut result);
    let (state, text) = match past.begun {
        false => {
            (result.status, result.blocked_reason) = (Status::Blocked, Some(reason.clone()));
            result.detail = Some(detail.clone());
            (TaskState::Rejected, format!("No worker took the work ({}): {detail}.", reason.name()))
        }
        true => {
            let error = stranded(hindrance, past);
            (result.status, result.error) = (Status::Error, Some(error.clone()));
            let is_late = *reason == BlockedReason::DeadlinePassed;
            result.ended_by = Some(if is_late { EndedBy::DeadlinePassed } else { EndedBy::Failed });
            (TaskState::Failed, error)
        }
    };
    vec![
        report(artifact(Some(past.titles.result(None)), None), &result),
        Report::Status { state, contents: Some(Contents::text(text)), metadata: None },
    ]
}

/// What is wrong with work that was begun, and that nobody goes on with.
fn stranded(Hindrance { reason, detail, .. }: &Hindrance, past: &Past) -> String {
    let why = format!("({}): {detail}.", reason.name());
    match &past.asked_again {
        Some((_, violations)) => {
            let violations = violations.join("; ");
            format!("The reply is not valid: {violations}. It was asked for once more, and no worker took that {why}")
        }
        None => format!("The work was begun, and no worker goes on with it {why}"),
    }
}

/// Whole seconds until then, at least one: "at once" would be asked again at once.
pub fn seconds(now: Millis, then: Millis) -> u64 {
    let millis = u64::try_from(then.0.saturating_sub(now.0)).unwrap_or(0);
    millis.div_ceil(1000).max(1)
}
