//! What a result is held against before it is accepted.

use super::Judge;
use super::evidence::looked_at;
use super::told::contradiction;
use crate::budget::Ceiling;
use flotilla_protocol::a2a::model::TaskState;
use flotilla_protocol::fleet::TaskResult;
use flotilla_protocol::fleet::dispatch::ReplySchema;
use flotilla_protocol::fleet::result::Status;
use flotilla_protocol::fleet::route::Check;

/// How a result speaks against itself, if it does.
fn within(result: &TaskResult) -> Option<&'static str> {
    match result.status {
        Status::Done | Status::Partial if result.error.is_some() => Some("it names an error, and says it went well"),
        Status::Done if !result.remaining.is_empty() => Some("it says it is done, and names what remains"),
        status if status != Status::Blocked && result.blocked_reason.is_some() => {
            Some("it names what blocked it, and says how it went")
        }
        _ => None,
    }
}

impl Judge {
    pub(super) fn checks(&self, result: &TaskResult, state: TaskState) -> Vec<Check> {
        let mut checks = Vec::new();
        let mut check = |name: &str, ok: bool, detail: &str| {
            let detail = if ok { String::new() } else { detail.to_owned() };
            checks.push(Check { name: name.into(), ok, detail });
        };
        let missing = match &self.wrong {
            Some(_) => "the worker's TASK_RESULT cannot be read",
            None if self.heard.quotes_result() => "the worker speaks of a TASK_RESULT, and does not end with one",
            None => "the worker sent no TASK_RESULT",
        };
        // Where JSON was asked for, that is the result, if it is valid.
        let replies = self.dispatch.task.reply_schema == ReplySchema::Json && state == TaskState::Completed;
        if !(result.inferred && replies && self.wrong.is_none() && !self.heard.quotes_result()) {
            check("result", !result.inferred, missing);
        }
        if let (Some(wanted), Some(told)) = (&self.dispatch.task.task_id, &result.task_id) {
            check("task_id", wanted == told, "it is of another task_id");
        }
        if let Some(contradiction) = contradiction(result.status, state) {
            check("state", false, contradiction);
        } else {
            check("state", true, "");
        }
        if let Some(contradiction) = within(result) {
            check("consistent", false, contradiction);
        }
        if let Some(over) = self.overspent() {
            check("budget", false, &over);
        }
        // What a worker program looked at itself: each either holds or does not.
        if let Some(evidence) = result.more.get("evidence") {
            looked_at("evidence", evidence, &mut |name, held| check(name, held, "the worker's own check did not hold"));
        }
        checks
    }

    /// By how much a hard ceiling was passed, if that came to be known with the result only.
    fn overspent(&self) -> Option<String> {
        let used = self.spent.total().unwrap_or_default();
        let own = Ceiling::of(&self.dispatch).filter(|ceiling| ceiling.hard);
        if let Some(over) = own.and_then(|own| own.marks(&used).find(|mark| mark.used > mark.most)) {
            return Some(format!("it used {}", over.told()));
        }
        let Some(held) = &self.held else { return Some("what is left of the budget cannot be read".into()) };
        held.iter().find_map(|held| held.passed(&used.beyond(&self.counted)))
    }
}
