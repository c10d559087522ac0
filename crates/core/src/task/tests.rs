//! Scripts for the task's decisions: what is done, and the state after each step.

use super::approve::{Answer, Question, Settling};
use super::{Command, Effect, Head, Kind, Retry, RunState, Say, apply, step};
use crate::budget::Broke;
use crate::descent::Descent;
use crate::ids::{AgentId, ApprovalId, PrincipalId, TaskId};
use flotilla_protocol::a2a::model::{Artifact, Message, Part, TaskState};
use flotilla_protocol::approval::ApprovalState;
use flotilla_protocol::block::Block;
use flotilla_protocol::event::{Change, Event};
use flotilla_protocol::fleet::route::Step;
use flotilla_protocol::lineage::{Ancestor, Origin};
use flotilla_protocol::time::Millis;
use flotilla_protocol::work::{Contents, Report, Upstream};
use serde_json::Value;
use std::sync::Arc;

fn fresh() -> Head {
    Head::new(TaskId::fresh(), PrincipalId(7), AgentId(3), PrincipalId(1), "ctx".into())
}

fn command(word: &str, head: &Head) -> Command {
    let (verb, run) = word.split_once('@').map_or((word, head.run), |(v, n)| (v, n.parse().unwrap()));
    let report = |report| Command::Report { run, reports: vec![report] };
    let status = |state| Report::Status { state, contents: Some(Contents::text("said")), metadata: None };
    let artifact = Box::new(Artifact { artifact_id: "a".into(), ..Artifact::default() });
    let say = |as_task, descent: Option<Descent>| {
        let message = Arc::new(Message { parts: vec![Part::text("hi")], ..Message::default() });
        let descent = descent.map(Box::new);
        Command::Say(Box::new(Say { message, descent, as_task, ..Say::default() }))
    };
    match verb {
        "say" => say(false, None),
        "say!" => say(true, None),
        "far" => say(false, Some(descent(&["a", "b"], None))),
        "farther" => say(false, Some(descent(&["a", "b", "c"], None))),
        "ring" => say(false, Some(descent(&["here"], None))),
        "until10" => say(false, Some(descent(&["a"], Some(10)))),
        "until20" => say(false, Some(descent(&["a"], Some(20)))),
        "late" => say(false, Some(descent(&[], Some(4)))),
        "at9" => Command::Overdue { now: Millis(9) },
        "at10" => Command::Overdue { now: Millis(10) },
        "at20" => Command::Overdue { now: Millis(20) },
        "say?" => {
            let message = Arc::new(Message { parts: vec![Part::text("hi")], ..Message::default() });
            Command::Say(Box::new(Say { message, held: Some("nobody is there".into()), ..Say::default() }))
        }
        "taken" => Command::Taken { run, opens: false },
        "acknowledged" => Command::Taken { run, opens: true },
        "hold" => Command::Hold { run, reason: "it went away".into() },
        "delivered" => Command::Delivered { run },
        "assigned" | "assigned10" | "blocked" => routed(verb, run),
        "moved" => Command::Moved { run, upstream: Box::default() },
        "open" => Command::Open,
        "started" => report(status(TaskState::Working)),
        "ask" => report(status(TaskState::InputRequired)),
        "auth" => report(status(TaskState::AuthRequired)),
        "done" => report(status(TaskState::Completed)),
        "fail" => report(status(TaskState::Failed)),
        "reject" => report(status(TaskState::Rejected)),
        "submitted" => report(status(TaskState::Submitted)),
        "answer" => report(Report::Answer { contents: Contents::text("direct"), metadata: None }),
        "note" => report(Report::Note { blocks: vec![Block::text("thought")] }),
        "took-up" => report(Report::TookUp),
        "chunk" => {
            let contents = Contents::text("piece");
            report(Report::Artifact { artifact, contents, append: true, last_chunk: false, metadata: None })
        }
        "linked" | "context" => {
            let task = if verb == "linked" { "theirs".to_owned() } else { String::new() };
            let upstream = Upstream { task, context: "theirs too".into(), ..Upstream::default() };
            report(Report::Linked { upstream, metadata: None, unknown: Vec::new() })
        }
        "leave" | "ruled" | "yes" => approval(verb, run, head),
        "near" => Command::NearBudget { limit: "tokens".into(), used: 5, most: 10 },
        "broke" => Command::Overspent(Broke::after("of this task", None)),
        "poor" => {
            let broke = Some(Box::new(Broke::before("of this day", None)));
            Command::Say(Box::new(Say { broke, ..Say::default() }))
        }
        "cancel" => Command::Cancel { said: None },
        "stop" => Command::AskToStop { run },
        "lost" => Command::Lost { run, reason: "gone".into(), retry: Retry::IfUnstarted },
        "lost-always" => Command::Lost { run, reason: "gone".into(), retry: Retry::Always },
        "lost-never" => Command::Lost { run, reason: "gone".into(), retry: Retry::Never },
        other => panic!("no such step: {other}"),
    }
}

fn routed(verb: &str, run: u32) -> Command {
    match verb {
        "assigned" | "assigned10" => {
            let step = Step::Resumed { worker: "w".into() };
            let deadline = (verb == "assigned10").then_some(Millis(10));
            Command::Route { run, step: Box::new(step), deadline }
        }
        _ => {
            let step = Step::AskedAgain { worker: "w".into(), violations: Vec::new() };
            Command::Again { run, step: Box::new(step) }
        }
    }
}

fn approval(verb: &str, run: u32, head: &Head) -> Command {
    match verb {
        "leave" | "ruled" => Command::Ask(Box::new(Question {
            id: ApprovalId::of(head.id, run, "q"),
            run,
            request: Arc::default(),
            expires: None,
            answer: (verb == "ruled").then(|| Answer::new(ApprovalState::Denied, "rule 1")),
            asker: None,
        })),
        _ => {
            let answer = Answer::new(ApprovalState::Allowed, "anna");
            Command::Settle(Box::new(Settling { id: ApprovalId::of(head.id, run, "q"), answer }))
        }
    }
}

/// The descent of a message that came through these hubs to one that allows two hops, at the time 5.
fn descent(hubs: &[&str], deadline: Option<i64>) -> Descent {
    let ancestor = |hub: &str| Ancestor { hub: hub.into(), agent: "agent".into(), task: "t".into() };
    let chain: Vec<Ancestor> = hubs.iter().map(|hub| ancestor(hub)).collect();
    let origin = Arc::new(Origin { hops: chain.len() as u32, chain, ..Origin::default() });
    Descent { origin, deadline: deadline.map(Millis), here: ancestor("here"), most_hops: 2, now: Millis(5) }
}

fn state(head: &Head) -> &'static str {
    match head.kind {
        Kind::Undecided => "UNDECIDED",
        Kind::Message => "MESSAGE",
        Kind::Task => head.state.name().trim_start_matches("TASK_STATE_"),
    }
}

/// Runs a script; a refused step shows its reason. Checks the numbering on the way.
fn play(script: &str) -> (Head, String) {
    let mut head = fresh();
    let mut states = Vec::new();
    for (index, word) in script.split(", ").enumerate() {
        match step(&head, command(word, &head)) {
            Err(refusal) => states.push(refusal.reason.row().reason.to_owned()),
            Ok(decision) => {
                if !decision.events.is_empty() {
                    let (first_seq, first_peer_seq) = (head.seq + 1, head.peer_seq + 1);
                    let at = Millis(index as i64 + 1);
                    let change = Change { first_seq, first_peer_seq, at, events: decision.events };
                    apply(&mut head, &change);
                    assert_eq!(head.seq, change.last_seq());
                    assert_eq!(head.peer_seq, change.last_peer_seq());
                }
                for Effect::StartRun { run, .. } in decision.effects {
                    assert!(run == head.run && matches!(head.run_state, RunState::Claimed | RunState::Watching));
                }
                states.push(state(&head).to_owned());
            }
        }
    }
    (head, states.join(" "))
}

fn check(script: &str, expected: &str) -> Head {
    let (head, states) = play(script);
    assert_eq!(states, expected, "{script}");
    head
}

#[test]
fn a_task_lives_and_ends() {
    check("say, started, done", "UNDECIDED WORKING COMPLETED");
    check("say!, started, chunk, fail", "SUBMITTED WORKING WORKING FAILED");
    check("say, reject", "UNDECIDED REJECTED");
    check("say, chunk, done", "UNDECIDED SUBMITTED COMPLETED");
}

#[test]
fn replies_start_a_new_run_and_old_runs_change_nothing() {
    check("say!, started, ask, say, done@1, done@2", "SUBMITTED WORKING INPUT_REQUIRED SUBMITTED SUBMITTED COMPLETED");
    check("say, auth, say, started", "UNDECIDED AUTH_REQUIRED SUBMITTED WORKING");
}

#[test]
fn an_agent_that_goes_on_by_itself_gets_a_run_that_tells_of_it() {
    let head =
        check("say, auth, moved, moved@1, done", "UNDECIDED AUTH_REQUIRED AUTH_REQUIRED AUTH_REQUIRED COMPLETED");
    assert_eq!((head.run, head.turn, head.peer_seq), (2, 1, 3), "nothing is shown before it says something");
    check("say, auth, say, moved@1, done", "UNDECIDED AUTH_REQUIRED SUBMITTED SUBMITTED COMPLETED");
    check("say, started, moved, done, moved", "UNDECIDED WORKING WORKING COMPLETED COMPLETED");
    let said = "say, ask, moved, started, say, started@2, ask@2, linked, done";
    let states = "UNDECIDED INPUT_REQUIRED INPUT_REQUIRED WORKING SUBMITTED SUBMITTED SUBMITTED SUBMITTED COMPLETED";
    assert_eq!(check(said, states).run, 3, "what is said meanwhile does not wait for the end of that run");
    let (head, _) = play("say, ask, moved, lost-always");
    assert_eq!((head.run_state, head.waiting), (RunState::Watching, 0), "nothing is said again by it");
}

#[test]
fn a_message_during_a_run_is_taken_up_after_it() {
    let head = check("say!, started, say, ask", "SUBMITTED WORKING WORKING SUBMITTED");
    assert_eq!((head.run, head.waiting, head.turn), (2, 0, 2));
    let head = check("say!, say, say, ask, ask", "SUBMITTED SUBMITTED SUBMITTED SUBMITTED SUBMITTED");
    assert_eq!((head.run, head.waiting, head.turn), (3, 0, 3));
}

#[test]
fn a_message_that_a_run_takes_up_does_not_wait() {
    let head = check("say!, started, say, took-up, done", "SUBMITTED WORKING WORKING WORKING COMPLETED");
    assert_eq!((head.run, head.waiting, head.turn), (1, 0, 2));
    let head = check("say!, say, say, took-up, done", "SUBMITTED SUBMITTED SUBMITTED SUBMITTED SUBMITTED");
    assert_eq!((head.run, head.waiting), (2, 0), "the third message has a run of its own");
}

#[test]
fn a_task_is_not_done_while_a_message_waits() {
    let head =
        check("say!, started, say, done, done@1, done@2", "SUBMITTED WORKING WORKING SUBMITTED SUBMITTED COMPLETED");
    assert_eq!((head.run, head.waiting), (2, 0));
    check("say!, say, answer, answer", "SUBMITTED SUBMITTED SUBMITTED COMPLETED");
    check("say!, say, fail", "SUBMITTED SUBMITTED FAILED");
}

#[test]
fn a_lost_run_gives_its_message_back() {
    let head = check("say!, lost, say, ask", "SUBMITTED SUBMITTED SUBMITTED SUBMITTED");
    assert_eq!((head.run, head.waiting, head.turn), (3, 0, 2));
}

#[test]
fn the_first_report_decides_message_or_task() {
    check("say, answer", "UNDECIDED MESSAGE");
    check("say, note, answer", "UNDECIDED UNDECIDED MESSAGE");
    check("say!, answer", "SUBMITTED COMPLETED");
    check("say, open, answer", "UNDECIDED SUBMITTED COMPLETED");
    check("say, answer, say", "UNDECIDED MESSAGE TASK_NOT_FOUND");
    check("say, answer, done", "UNDECIDED MESSAGE MESSAGE");
}

#[test]
fn nothing_changes_an_ended_task() {
    check("say, done, say, cancel", "UNDECIDED COMPLETED UNSUPPORTED_OPERATION TASK_NOT_CANCELABLE");
    check("say!, cancel, done, started", "SUBMITTED CANCELED CANCELED CANCELED");
    check("say!, cancel, cancel", "SUBMITTED CANCELED TASK_NOT_CANCELABLE");
    check("say, cancel", "UNDECIDED TASK_NOT_FOUND");
    let head =
        check("say!, started, stop, stop@7, done, stop", "SUBMITTED WORKING WORKING WORKING COMPLETED COMPLETED");
    assert_eq!((head.seq, head.peer_seq), (7, 3), "asked once, and nobody's to see but the owner's");
}

#[test]
fn an_agent_cannot_report_what_is_not_its_to_say() {
    check("say!, submitted", "SUBMITTED INVALID_AGENT_RESPONSE");
}

#[test]
fn a_lost_run_is_retried_only_if_it_never_started() {
    let head = check("say!, lost, done@1, done@2", "SUBMITTED SUBMITTED SUBMITTED COMPLETED");
    assert_eq!(head.run, 2);
    check("say!, started, lost", "SUBMITTED WORKING FAILED");
    check("say, note, lost", "UNDECIDED UNDECIDED FAILED");
    check("say!, started, lost-always", "SUBMITTED WORKING WORKING");
    check("say!, lost-never", "SUBMITTED FAILED");
    check("say!, lost@9", "SUBMITTED SUBMITTED");
}

#[test]
fn a_task_that_kills_its_agent_ends() {
    let (head, _) = play("say!, lost, lost, lost, lost, lost, lost, lost");
    assert_eq!(head.state, TaskState::Failed);
}

#[test]
fn hidden_events_do_not_count_for_peers() {
    let head =
        check("say!, note, note, started, note, done", "SUBMITTED SUBMITTED SUBMITTED WORKING WORKING COMPLETED");
    assert_eq!(head.peer_seq, 3);
    assert_eq!(head.seq, 9);
}

#[test]
fn a_call_that_may_not_go_on_is_rejected_and_nothing_runs() {
    let head = check("far, done", "UNDECIDED COMPLETED");
    assert_eq!(head.origin.map(|origin| origin.hops), Some(2));
    for script in ["farther, done", "ring, done", "late, done"] {
        let head = check(script, "REJECTED REJECTED");
        assert_eq!((head.run, head.run_state, head.peer_seq), (0, RunState::Idle, 2), "{script}");
        assert!(head.origin.is_some(), "where it came from is known all the same");
    }
}

#[test]
fn a_later_message_may_move_the_deadline_and_what_speaks_against_it_is_its_own_problem() {
    let head = check("until10, ask, until20, at10, at20", "UNDECIDED INPUT_REQUIRED SUBMITTED SUBMITTED FAILED");
    assert_eq!(head.deadline, Some(Millis(20)));
    assert_eq!(head.origin.map(|origin| origin.hops), Some(1));
    let head = check("until10, ask, say, done", "UNDECIDED INPUT_REQUIRED SUBMITTED COMPLETED");
    assert_eq!(head.deadline, Some(Millis(10)), "who tells none changes none");
    for wrong in ["ring", "farther", "late"] {
        let script = format!("say, ask, {wrong}, say");
        check(&script, "UNDECIDED INPUT_REQUIRED UNSUPPORTED_OPERATION SUBMITTED");
    }
}

#[test]
fn a_deadline_ends_what_is_open_and_fences_its_run() {
    check("until10, at9, started, at10, done@1", "UNDECIDED UNDECIDED WORKING FAILED FAILED");
    check("until10, at10", "UNDECIDED FAILED");
    check("until10, ask, at10, say", "UNDECIDED INPUT_REQUIRED FAILED UNSUPPORTED_OPERATION");
    check("until10, done, at20", "UNDECIDED COMPLETED COMPLETED");
    check("until10, answer, at20", "UNDECIDED MESSAGE MESSAGE");
    check("say, started, at20", "UNDECIDED WORKING WORKING");
}

#[test]
fn an_agent_elsewhere_that_has_a_task_makes_one() {
    let head = check("say, linked, done", "UNDECIDED SUBMITTED COMPLETED");
    assert_eq!(head.peer_seq, 2, "its ids are not for peers");
    check("say, context, answer", "UNDECIDED UNDECIDED MESSAGE");
    check("say, linked, lost", "UNDECIDED SUBMITTED FAILED");
}

#[test]
fn what_an_agent_elsewhere_said_keeps_all_but_the_ids() {
    let (head, _) = play("say!, started");
    let told = r#"{"messageId":"m-1","contextId":"x","taskId":"y","role":"ROLE_AGENT","parts":[{"text":"hi"}],
        "metadata":{"n":1.0},"extensions":["urn:x"],"referenceTaskIds":["r"],"later":[1]}"#;
    let contents = Some(Contents::Message(serde_json::from_str(told).unwrap()));
    let report = Report::Status { state: TaskState::Completed, contents, metadata: None };
    let decision = step(&head, Command::Report { run: 1, reports: vec![report] }).unwrap();
    let [Event::Status { said: Some(said), .. }] = decision.events.as_slice() else { panic!("{decision:?}") };
    let expected = told.replace("\"x\"", "\"ctx\"").replace("\"y\"", &format!("\"{}\"", head.id));
    let (kept, expected): (Value, Value) =
        (serde_json::to_value(&*said.message).unwrap(), serde_json::from_str(&expected).unwrap());
    assert_eq!(kept, expected);
}

#[test]
fn a_message_for_an_agent_that_is_not_there_waits_and_says_so() {
    let head = check("say?, done", "SUBMITTED COMPLETED");
    assert_eq!(head.peer_seq, 3, "it was opened, said to wait, and completed");
    check("say?, lost, lost", "SUBMITTED SUBMITTED SUBMITTED");
    check("say, hold, taken, started, done", "UNDECIDED SUBMITTED SUBMITTED WORKING COMPLETED");
    let head = check("say?, delivered", "SUBMITTED SUBMITTED");
    assert_eq!(head.peer_seq, 3, "it was opened, said to wait, and to wait no more");
    check("say?, started, delivered, done, delivered", "SUBMITTED WORKING WORKING COMPLETED COMPLETED");
    check("say, acknowledged, done", "UNDECIDED SUBMITTED COMPLETED");
    check("say, taken, acknowledged, acknowledged", "UNDECIDED UNDECIDED SUBMITTED SUBMITTED");
    check("say, done, acknowledged", "UNDECIDED COMPLETED COMPLETED");
    check("say, taken, hold, lost", "UNDECIDED UNDECIDED UNDECIDED FAILED");
    check("say, started, ask, say?, done@2", "UNDECIDED WORKING INPUT_REQUIRED SUBMITTED COMPLETED");
}

#[test]
fn a_question_is_answered_once_and_void_when_its_run_is_over() {
    let open = check("say, leave", "UNDECIDED WORKING");
    assert_eq!((open.open_approvals.len(), open.run_state), (1, RunState::Started));
    assert!(check("say, leave, leave", "UNDECIDED WORKING WORKING").seq == open.seq, "the same is asked once");
    let answered = check("say, leave, yes, yes", "UNDECIDED WORKING WORKING UNSUPPORTED_OPERATION");
    assert!(answered.open_approvals.is_empty());
    let ruled = check("say, ruled, answer", "UNDECIDED UNDECIDED MESSAGE");
    assert!(ruled.open_approvals.is_empty(), "a rule's answer leaves nothing open, and shows nothing");
    for (over, expected) in [
        ("cancel", "CANCELED"),
        ("done", "COMPLETED"),
        ("ask", "INPUT_REQUIRED"),
        ("lost", "FAILED"),
        ("lost-always", "WORKING"),
        ("broke", "FAILED"),
    ] {
        let (before, after) =
            (open.seq, check(&format!("say, leave, {over}"), &format!("UNDECIDED WORKING {expected}")));
        assert!(after.open_approvals.is_empty() && after.seq > before + 1, "{over} takes it back, and says so");
        let late = check(
            &format!("say, leave, {over}, yes@1"),
            &format!("UNDECIDED WORKING {expected} UNSUPPORTED_OPERATION"),
        );
        assert_eq!(late.seq, after.seq);
    }
    check("say, started, done, leave@1", "UNDECIDED WORKING COMPLETED COMPLETED");
}

#[test]
fn a_budget_that_is_used_up_ends_work_or_begins_none() {
    check("say, started, near, broke", "UNDECIDED WORKING WORKING FAILED");
    let done = check("say, done, near, broke", "UNDECIDED COMPLETED COMPLETED COMPLETED");
    assert_eq!(done.seq, check("say, done", "UNDECIDED COMPLETED").seq, "what is over stays as it is");
    let poor = check("poor", "REJECTED");
    assert_eq!((poor.run, poor.run_state), (0, RunState::Idle));
    check("say, ask, poor", "UNDECIDED INPUT_REQUIRED RESOURCE_EXHAUSTED");
}

#[test]
fn dispatched_work_is_a_task_and_blocked_ends_the_run_alone() {
    let head = check(
        "say, assigned, blocked, assigned, started, done",
        "UNDECIDED SUBMITTED SUBMITTED SUBMITTED WORKING COMPLETED",
    );
    assert_eq!((head.run, head.waiting), (2, 0));
    let head = check("say, assigned, started, blocked, done@1", "UNDECIDED SUBMITTED WORKING SUBMITTED SUBMITTED");
    assert_eq!((head.run, head.run_state), (2, RunState::Claimed), "what an old run says changes nothing");
    check("say, assigned, done, blocked@1", "UNDECIDED SUBMITTED COMPLETED COMPLETED");
    let head = check("say, assigned10, at9, at10", "UNDECIDED SUBMITTED SUBMITTED FAILED");
    assert_eq!(head.deadline, Some(Millis(10)), "the deadline of a dispatch counts from when it is given");
}
