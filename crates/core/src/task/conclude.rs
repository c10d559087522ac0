//! The last word of dispatched work: whoever ends it, its end comes with a TASK_RESULT.

use super::{Command, Decision, Head};
use crate::fleet::own;
use crate::fleet::spent::Spent;
use flotilla_protocol::a2a::model::TaskState;
use flotilla_protocol::event::{Chunk, Event, Said};
use flotilla_protocol::fleet::result::{BlockedReason, EndedBy, Status};
use flotilla_protocol::fleet::{HANDSHAKE, TaskResult, version};
use flotilla_protocol::lineage::{ANCESTRY, find_member};
use flotilla_protocol::wire::Object;
use serde_json::Value;
use std::sync::Arc;

/// What a result has to say of work, whoever ends it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Account {
    /// The orchestrator's own name for it.
    pub task_id: Option<String>,
    /// What the artifact with the result is to be called.
    pub artifact: Option<String>,
    /// Nobody has begun it: what comes to nothing then was refused.
    pub unbegun: bool,
    pub spent: Spent,
}

pub(super) fn ended_by(command: &Command) -> EndedBy {
    match command {
        Command::Lost { .. } => EndedBy::Lost,
        Command::Cancel { .. } => EndedBy::Canceled,
        Command::Overdue { .. } => EndedBy::DeadlinePassed,
        Command::Overspent(_) => EndedBy::BudgetExhausted,
        _ => EndedBy::Failed,
    }
}

/// Puts the result before the end, if the decision is one.
pub(super) fn conclude(head: &Head, decision: &mut Decision, account: &Account, by: EndedBy) {
    let ends = |event: &Event| matches!(event, Event::Status { state, .. } if state.is_terminal());
    let Some(at) = decision.events.iter().position(ends) else { return };
    let Event::Status { state, said, .. } = &mut decision.events[at] else { return };
    if account.unbegun && by == EndedBy::DeadlinePassed {
        *state = TaskState::Rejected;
    }
    let result = result(*state, said.as_ref(), account, by);
    if let Some(said) = said {
        renumber(head, said);
    }
    let mut artifact = own::artifact(account.artifact.clone(), None);
    artifact.parts = vec![own::part(&result)];
    let artifact = Arc::new(artifact);
    let chunk = Chunk { artifact, blocks: Vec::new(), append: false, last_chunk: true, metadata: None };
    decision.events.insert(at, Event::Produced { chunk });
}

/// A message of the hub's is named after the event that carries it, which comes one later now.
fn renumber(head: &Head, said: &mut Said) {
    let own = said.message.message_id.strip_prefix(&format!("{}-", head.id)).and_then(|n| n.parse::<u64>().ok());
    if let Some(number) = own {
        Arc::make_mut(&mut said.message).message_id = format!("{}-{}", head.id, number + 1);
    }
}

fn result(state: TaskState, said: Option<&Said>, account: &Account, by: EndedBy) -> TaskResult {
    let message = said.map(|said| &said.message);
    let text = message.and_then(|message| message.parts.iter().find_map(|part| part.text.clone()));
    let told = |uri: &str| told(message.and_then(|message| message.metadata.as_ref()), uri);
    let mut result =
        TaskResult { protocol_version: version::CURRENT, task_id: account.task_id.clone(), ..TaskResult::default() };
    let why = told(HANDSHAKE);
    result.retryable = why["retryable"].as_bool();
    result.retry_after = why["retry_after"].as_u64();
    account.spent.write(&mut result);
    if state == TaskState::Rejected {
        let refused = told(ANCESTRY);
        let reason = match (why["blocked_reason"].as_str(), refused["refused"].as_str()) {
            (Some(reason), _) => BlockedReason::of(reason),
            (None, Some("deadline")) => BlockedReason::DeadlinePassed,
            (None, None) if by == EndedBy::DeadlinePassed => BlockedReason::DeadlinePassed,
            // A ring of calls, or one call too many: there is no typed word for it.
            (None, word) => BlockedReason::of(word.unwrap_or("rejected")),
        };
        (result.status, result.blocked_reason, result.detail) = (Status::Blocked, Some(reason), text);
        result.retryable = result.retryable.or(Some(false));
        return result;
    }
    let usual = match by {
        EndedBy::Canceled => "The work was canceled.",
        _ => "The work was ended.",
    };
    (result.status, result.error) = (Status::Error, Some(text.unwrap_or_else(|| usual.to_owned())));
    result.ended_by = Some(by);
    result.retryable = result.retryable.or(match by {
        EndedBy::Lost => Some(true),
        EndedBy::DeadlinePassed | EndedBy::BudgetExhausted => Some(false),
        EndedBy::Canceled | EndedBy::Failed => None,
    });
    result
}

fn told(metadata: Option<&Object>, uri: &str) -> Value {
    let json = metadata.and_then(|metadata| find_member(metadata, uri));
    json.and_then(|json| serde_json::from_str(json.text()).ok()).unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests {
    use super::Account;
    use crate::budget::Broke;
    use crate::ids::{AgentId, PrincipalId, TaskId};
    use crate::task::{Command, Head, Kind, Retry, RunState, step};
    use flotilla_protocol::a2a::model::TaskState;
    use flotilla_protocol::event::Event;
    use flotilla_protocol::time::Millis;
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn head() -> Head {
        let head = Head::new(TaskId::fresh(), PrincipalId(1), AgentId(1), PrincipalId(1), "c".into());
        let (kind, state, run_state) = (Kind::Task, TaskState::Working, RunState::Started);
        Head { kind, state, run: 1, run_state, turn: 1, peer_seq: 4, deadline: Some(Millis(5)), version: 3, ..head }
    }

    /// The result an end comes with, and how its message is numbered.
    fn ended(head: &Head, command: Command) -> (Value, String) {
        let account = Account { task_id: Some("mine".into()), ..Account::default() };
        let under = Command::Under { account: Arc::new(account), command: Box::new(command) };
        let events = step(head, under).unwrap().events;
        let at = events.iter().position(|event| matches!(event, Event::Status { .. })).expect("it ends");
        let Event::Status { said, .. } = &events[at] else { panic!("{events:?}") };
        let number = said.as_ref().map(|said| said.message.message_id.clone()).unwrap_or_default();
        let Event::Produced { chunk } = &events[at - 1] else { panic!("{events:?}") };
        let data = chunk.artifact.parts[0].data.0.as_ref().expect("data");
        (serde_json::from_str(data.text()).unwrap(), number)
    }

    #[test]
    fn every_end_says_what_became_of_the_work() {
        let head = head();
        let lost = Command::Lost { run: 1, reason: "it went away".into(), retry: Retry::Never };
        for (command, by, retryable) in [
            (lost, "lost", json!(true)),
            (Command::Cancel { said: None }, "canceled", Value::Null),
            (Command::Overdue { now: Millis(9) }, "deadline_passed", json!(false)),
            (Command::Overspent(Broke::after("of this task", None)), "budget_exhausted", json!(false)),
        ] {
            let is_cancel = matches!(command, Command::Cancel { .. });
            let (told, number) = ended(&head, command);
            assert_eq!((&told["task_id"], &told["status"]), (&json!("mine"), &json!("error")), "{told}");
            assert_eq!((&told["ended_by"], &told["retryable"]), (&json!(by), &retryable), "{told}");
            assert!(told["error"].as_str().is_some_and(|error| error.len() > 10), "{told}");
            assert!(is_cancel || number == format!("{}-6", head.id), "after the event that carries it: {number}");
        }
    }

    #[test]
    fn a_deadline_that_passes_before_anybody_began_is_a_refusal() {
        let account = Account { unbegun: true, ..Account::default() };
        let command = Box::new(Command::Overdue { now: Millis(9) });
        let events = step(&head(), Command::Under { account: Arc::new(account), command }).unwrap().events;
        assert!(events.iter().any(|event| matches!(event, Event::Status { state: TaskState::Rejected, .. })));
        let told = events.iter().find_map(|event| match event {
            Event::Produced { chunk } => chunk.artifact.parts[0].data.0.as_ref(),
            _ => None,
        });
        let told: Value = serde_json::from_str(told.expect("a result").text()).unwrap();
        assert_eq!(
            (&told["status"], &told["blocked_reason"]),
            (&json!("blocked"), &json!("deadline_passed")),
            "{told}"
        );
        assert_eq!((&told["retryable"], &told["ended_by"]), (&json!(false), &Value::Null), "{told}");
    }

    #[test]
    fn a_run_that_is_tried_again_is_no_end() {
        let lost = Command::Lost { run: 1, reason: "it went away".into(), retry: Retry::Always };
        let under = Command::Under { account: Arc::default(), command: Box::new(lost) };
        let events = step(&head(), under).unwrap().events;
        assert!(!events.iter().any(|event| matches!(event, Event::Produced { .. })), "{events:?}");
    }
}
