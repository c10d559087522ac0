//! `flotilla task why`: who was looked at for a task's work, and what was decided.

use super::deliveries::hub;
use super::failure::Failure;
use super::log::only_the_hub;
use super::output::{Text, document};
use super::owner::Hints;
use super::session::Session;
use clap::Args;
use flotilla_outbound::client::error::ClientError;
use flotilla_protocol::fleet::route::{Candidate, Considered, Form, Step};
use flotilla_protocol::time::Millis;
use serde::Deserialize;

#[derive(Debug, Args)]
pub struct Why {
    /// The task's id
    id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    task_id: String,
    /// An older hub does not tell it.
    #[serde(default)]
    context_id: String,
    state: String,
    pruned: bool,
    steps: Vec<Decided>,
}

#[derive(Deserialize)]
struct Decided {
    at: Millis,
    run: u32,
    #[serde(flatten)]
    step: Step,
}

const HINTS: Hints = Hints {
    key: "it is for the task's caller and the agent's owner: set FLOTILLA_KEY, and --hub to the hub",
    missing: "it is there for the task's caller and the agent's owner: look at the id, and set FLOTILLA_KEY to their key",
};

impl Why {
    pub fn id(&self) -> &str {
        &self.id
    }

    pub async fn run(self, session: &Session) -> Result<(), Failure> {
        only_the_hub("task why", &session.args)?;
        let told = hub(session).why(&self.id).await.and_then(|json| show(session, &json));
        told.map_err(|error| HINTS.failure(error))
    }
}

fn show(session: &Session, json: &str) -> Result<(), ClientError> {
    if session.is_json() {
        document(json);
        return Ok(());
    }
    let told: Told = serde_json::from_str(json).map_err(ClientError::malformed)?;
    let mut text = Text::default();
    text.field("Task", &told.task_id).field("Context", &told.context_id).field("State", &told.state);
    if told.pruned {
        text.field("Note", "the log is folded: single decisions are not kept any more");
    } else if told.steps.is_empty() {
        text.field("Note", "the task is under no dispatch, so there was nobody to choose");
    }
    for decided in &told.steps {
        text.gap().field("Run", &format!("{} {} {}", decided.run, decided.at, summary(&decided.step)));
        for candidate in considered(&decided.step).iter().flat_map(|considered| &considered.workers) {
            text.field(&format!("  {}", candidate.worker), &opinion(candidate));
        }
        let others = considered(&decided.step).map_or(0, |considered| considered.others);
        if others > 0 {
            text.field("  others", &others.to_string());
        }
    }
    text.print();
    Ok(())
}

fn considered(step: &Step) -> Option<&Considered> {
    match step {
        Step::Queued { considered, .. } | Step::Assigned { considered, .. } | Step::Rejected { considered, .. } => {
            Some(considered)
        }
        _ => None,
    }
}

fn opinion(candidate: &Candidate) -> String {
    let Some(score) = candidate.score else {
        let against = candidate.obstacles.iter().map(|o| format!("{} ({})", o.reason.name(), o.detail));
        return format!("no: {}", against.collect::<Vec<_>>().join("; "));
    };
    let points = candidate.points.iter().map(|(name, point)| format!("{name} {point:.2}"));
    format!("could: {score:.2} ({})", points.collect::<Vec<_>>().join(", "))
}

fn told_as(form: Form) -> &'static str {
    match form {
        Form::Metadata => "told in the handshake",
        Form::Hints => "told by hints in the text",
        Form::Text => "told as plain text",
    }
}

/// A decision in one line.
pub fn summary(step: &Step) -> String {
    match step {
        Step::Queued { until, .. } => format!("queued until {until}"),
        Step::Assigned { worker, unverified, form, fallback, .. } => {
            let told = fallback.as_ref().map(|why| format!(", {} ({why})", told_as(*form))).unwrap_or_default();
            let unverified = match unverified.as_slice() {
                [] => String::new(),
                unverified => format!(", unverified: {}", unverified.join(", ")),
            };
            format!("assigned to {worker}{told}{unverified}")
        }
        Step::Resumed { worker } => format!("still with {worker} after a restart of the hub"),
        Step::Blocked { worker, reason, detail, .. } => {
            format!("blocked by {worker}: {} {detail}", reason.name()).trim_end().to_owned()
        }
        Step::AskedAgain { worker, violations } => format!("asked {worker} again: {}", violations.join("; ")),
        Step::Alerted { text, .. } => format!("the owner was alerted: {text}"),
        Step::Rejected { reason, detail, .. } => format!("rejected: {} ({detail})", reason.name()),
        Step::Judged { worker, standing, checks } => {
            let failed =
                checks.iter().filter(|check| !check.ok).map(|check| format!("; {}: {}", check.name, check.detail));
            let standing = format!("{standing:?}").to_lowercase();
            format!("result of {worker} {standing}{}", failed.collect::<String>())
        }
        Step::Lost { detail } => format!("lost: {detail}"),
        Step::Fallback { version } => format!("sent as plain text: the dispatch is of version {version}"),
    }
}
