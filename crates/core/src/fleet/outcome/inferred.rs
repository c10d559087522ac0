//! What the end of a worker comes to that told no result, or none that goes with how it ended.

use super::{Judge, shortened};
use crate::fleet::own;
use flotilla_protocol::a2a::model::TaskState;
use flotilla_protocol::fleet::result::{BlockedReason, EndedBy, Status, retry_after};
use flotilla_protocol::fleet::{HANDSHAKE, TaskResult, version};
use flotilla_protocol::lineage;
use flotilla_protocol::wire::Object;
use flotilla_protocol::work::Report;
use serde_json::Value;

impl Judge {
    /// What kept an agent from going on, where it says no more than that: a usage limit, say.
    pub(super) fn stopped_by(&self, metadata: &Object) -> Option<Box<TaskResult>> {
        let told: Value = serde_json::from_str(lineage::find_member(metadata, HANDSHAKE)?.text()).ok()?;
        let reason = BlockedReason::of(told["blocked_reason"].as_str()?);
        Some(Box::new(TaskResult {
            protocol_version: version::CURRENT,
            status: Status::Blocked,
            blocked_reason: Some(reason),
            detail: Some(shortened(self.heard.last())).filter(|said| !said.is_empty()),
            retryable: told["retryable"].as_bool(),
            retry_after: retry_after(&told["retry_after"]),
            ..TaskResult::default()
        }))
    }

    /// What a worker's end comes to that said nothing of the kind.
    pub(super) fn inferred(&self, state: TaskState) -> TaskResult {
        let mut result = TaskResult { inferred: true, protocol_version: version::CURRENT, ..TaskResult::default() };
        let said = shortened(self.heard.last());
        // Whoever means to tell how it went, and does so wrongly, is not taken to be done.
        if let Some(problem) = self.wrong.as_ref().filter(|_| state != TaskState::Rejected) {
            (result.status, result.error) = (Status::Error, Some(format!("The result cannot be read: {problem}")));
            return result;
        }
        match state {
            // It does not say what is missing, but that it cannot: what that is it has to announce.
            TaskState::Rejected => {
                (result.status, result.blocked_reason) = (Status::Blocked, Some(BlockedReason::MissingCapability));
                let said = Some(said).filter(|said| !said.is_empty()).or_else(|| self.wrong.clone());
                result.detail = Some(said.unwrap_or_else(|| "it gave no reason".into()));
            }
            TaskState::Completed => result.detail = Some(said).filter(|said| !said.is_empty()),
            _ => {
                let unsaid = match state {
                    TaskState::Canceled => "The worker canceled the work, and did not say why.",
                    _ => "The worker did not say why.",
                };
                let error = if said.is_empty() { unsaid.to_owned() } else { said };
                (result.status, result.error) = (Status::Error, Some(error));
            }
        }
        result
    }

    /// A worker that stopped of its own accord says how far it came, or the hub does.
    pub(super) fn canceled(&mut self, passed: &mut Vec<Report>) {
        let mut result = match self.told.take() {
            Some((blocked, _)) if blocked.status == Status::Blocked => {
                let mut result = self.inferred(TaskState::Canceled);
                let reason = blocked.blocked_reason.as_ref().map_or("no reason given", BlockedReason::name);
                result.error = Some(format!("The worker canceled the work, and says that it is blocked ({reason})."));
                result
            }
            Some((result, _)) => result,
            None => self.inferred(TaskState::Canceled),
        };
        passed.extend(self.spent.result(&result));
        self.reconcile(&mut result, TaskState::Canceled);
        self.complete(&mut result);
        result.ended_by = Some(EndedBy::Canceled);
        passed.push(own::report(own::artifact(Some(self.titles.result(self.artifact.as_deref())), None), &result));
    }
}
