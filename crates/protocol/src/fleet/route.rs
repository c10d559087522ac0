//! What became of dispatched work on its way to a worker and back: facts of the owner's log.

use super::result::BlockedReason;
use crate::time::Millis;
use serde::{Deserialize, Serialize};

/// One decision. Names are stored, so they only ever grow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum Step {
    /// Nobody can take it now: it waits.
    Queued { until: Millis, considered: Considered },
    Assigned {
        worker: String,
        /// The announcement that was decided on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        epoch: Option<u64>,
        /// It must take the work up by then.
        lease_until: Millis,
        form: Form,
        /// Why it is told of its work in less than the handshake.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fallback: Option<String>,
        /// What nobody could check.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unverified: Vec<String>,
        considered: Considered,
    },
    /// The worker had it when the hub stopped, and goes on.
    Resumed { worker: String },
    /// The worker answered that it cannot. Ends the run.
    Blocked {
        worker: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        epoch: Option<u64>,
        revision: u64,
        reason: BlockedReason,
        detail: String,
        /// It is not asked again before that; without it, not before it announces something new.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Millis>,
        /// When the same work may succeed there, and whether it ever may, as the worker said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_at: Option<Millis>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retryable: Option<bool>,
    },
    /// The reply was not what was asked for. Ends the run.
    AskedAgain { worker: String, violations: Vec<String> },
    /// The owner was told.
    Alerted { reason: BlockedReason, text: String },
    /// No worker took it, and nothing is left to try.
    Rejected { reason: BlockedReason, detail: String, considered: Considered },
    /// The worker's result was looked at.
    Judged {
        worker: String,
        standing: Standing,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        checks: Vec<Check>,
    },
    /// The dispatch is of a version that is not spoken here, so it went on as plain text.
    Fallback { version: String },
    /// The run was lost, and why. The log has that as a fact of its own: here it is only told among the decisions.
    Lost { detail: String },
}

impl Step {
    /// Whether the run is over with it, and the work is to be done again.
    pub fn ends_run(&self) -> bool {
        matches!(self, Self::Blocked { .. } | Self::AskedAgain { .. })
    }
}

/// How a worker is told of its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// As metadata of the message, for one that announced itself.
    Metadata,
    /// As hints in the text, for one that did not.
    Hints,
    /// As the brief alone, for one that speaks no version of ours.
    Text,
}

/// Who was looked at. Of many, the best are listed and the others counted.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Considered {
    pub workers: Vec<Candidate>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub others: usize,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// What was thought of one worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    pub worker: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// It could do it; the higher, the better. Absent if something stood in the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// What the score is made of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<(String, f64)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub obstacles: Vec<Obstacle>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Obstacle {
    pub reason: BlockedReason,
    pub detail: String,
}

/// Whether a result is only what a worker says, or has been checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    Reported,
    Accepted,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    pub name: String,
    pub ok: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}
