//! Frames and whole tasks as reports: each thing once, however often the agent tells it.

use super::{Garbage, Seen};
use flotilla_protocol::a2a::model::{Artifact, TaskState};
use flotilla_protocol::work::{Contents, Report, Trail, Waits};
use serde_json::{Value, json};

fn told(seen: &mut Seen, frame: &Value) -> Result<Vec<String>, Garbage> {
    let sent = serde_json::from_value(frame.clone()).unwrap();
    Ok(seen.take(sent)?.iter().map(line).collect())
}

fn line(report: &Report) -> String {
    let words = |contents: &Contents| match contents {
        Contents::Parts(parts) => parts.iter().filter_map(|part| part.text.clone()).collect::<Vec<_>>().join("+"),
        Contents::Message(message) => {
            let first = message.parts.first().map_or("", |part| part.text.as_deref().unwrap());
            format!("{}:{first}", message.message_id)
        }
        Contents::Blocks(_) => panic!("no blocks come from elsewhere"),
    };
    match report {
        Report::Status { state, contents, .. } => {
            let said = contents.as_ref().map(|contents| format!(" {}", words(contents))).unwrap_or_default();
            format!("{}{said}", state.name().trim_start_matches("TASK_STATE_"))
        }
        Report::Artifact { artifact, contents, append, .. } => {
            format!("{}{}{}", artifact.artifact_id, if *append { "+=" } else { "=" }, words(contents))
        }
        Report::Answer { contents, .. } => format!("answer {}", words(contents)),
        Report::Linked { upstream, .. } => format!("linked {}/{}", upstream.task, upstream.context),
        Report::Note { .. } | Report::TookUp | Report::Received { .. } => panic!("none of these come from elsewhere"),
    }
}

fn text(text: &str) -> Value {
    json!({"text": text})
}

fn task(state: &str, artifacts: &Value, history: &Value) -> Value {
    let status = json!({"state": format!("TASK_STATE_{state}")});
    json!({"task": {"id": "t", "contextId": "c", "status": status, "artifacts": artifacts, "history": history}})
}

#[test]
fn a_stream_and_the_whole_task_after_it_are_told_once() {
    let mut seen = Seen::of(&Trail::default(), "u");
    assert_eq!(told(&mut seen, &task("SUBMITTED", &json!([]), &json!([]))).unwrap(), ["linked t/c"]);
    let status = json!({"statusUpdate": {"taskId": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING",
        "message": {"messageId": "m1", "role": "ROLE_AGENT", "parts": [text("hm")]}}}});
    assert_eq!(told(&mut seen, &status).unwrap(), ["WORKING m1:hm"]);
    let chunk = |append: bool, said: &str| {
        json!({"artifactUpdate": {"taskId": "t", "contextId": "c", "append": append,
        "artifact": {"artifactId": "a", "parts": [text(said)]}}})
    };
    assert_eq!(told(&mut seen, &chunk(false, "1")).unwrap(), ["a=1"]);
    assert_eq!(told(&mut seen, &chunk(true, "2")).unwrap(), ["a+=2"]);
    // The stream broke here, and the task went on.
    let history = json!([
        {"messageId": "u", "role": "ROLE_USER", "parts": [text("ask")]},
        {"messageId": "m1", "role": "ROLE_AGENT", "parts": [text("hm")]},
        {"messageId": "m2", "role": "ROLE_AGENT", "parts": [text("aha")]},
    ]);
    let grown = json!([{"artifactId": "a", "parts": [text("1"), text("2"), text("3")]}]);
    assert_eq!(told(&mut seen, &task("WORKING", &grown, &history)).unwrap(), ["WORKING m2:aha", "a+=3"]);
    assert!(told(&mut seen, &task("WORKING", &grown, &history)).unwrap().is_empty());
    assert!(!seen.is_settled());
    let behind = json!([{"artifactId": "a", "parts": [text("1")]}]);
    assert!(told(&mut seen, &task("WORKING", &behind, &history)).unwrap().is_empty(), "as it was a moment ago");
    let other = json!([{"artifactId": "a", "parts": [text("123")]}, {"artifactId": "b", "parts": [text("x")]}]);
    assert_eq!(told(&mut seen, &task("COMPLETED", &other, &history)).unwrap(), ["a=123", "b=x", "COMPLETED"]);
    assert!(seen.is_settled());
}

#[test]
fn what_the_log_holds_is_not_told_again() {
    let artifact: Artifact = serde_json::from_value(json!({"artifactId": "a", "parts": [text("1")]})).unwrap();
    let mut trail = Trail { linked: true, said: vec!["m1".into()], state: TaskState::Working, ..Trail::default() };
    trail.upstream.task = "t".into();
    trail.upstream.context = "c".into();
    trail.artifacts = vec![artifact.into()];
    let mut seen = Seen::of(&trail, "u");
    let history = json!([{"messageId": "m1", "role": "ROLE_AGENT", "parts": [text("hm")]}]);
    let artifacts = json!([{"artifactId": "a", "parts": [text("1")]}]);
    assert!(told(&mut seen, &task("WORKING", &artifacts, &history)).unwrap().is_empty());
}

#[test]
fn a_message_is_an_answer() {
    let mut seen = Seen::of(&Trail::default(), "u");
    let message = json!({"message": {"messageId": "m", "contextId": "c", "role": "ROLE_AGENT", "parts": [text("hi")]}});
    assert_eq!(told(&mut seen, &message).unwrap(), ["linked /c", "answer m:hi"]);
    assert!(seen.is_settled());
}

#[test]
fn a_message_to_a_task_is_told_within_it_and_stays_with_how_it_waits() {
    let mut trail = Trail { said: vec!["q".into()], state: TaskState::Submitted, ..Trail::default() };
    (trail.upstream.task, trail.upstream.context) = ("t".into(), "c".into());
    let asks = |state: &str, id: &str| {
        let mut task = task(state, &json!([]), &json!([]));
        task["task"]["status"]["message"] = json!({"messageId": id, "role": "ROLE_AGENT", "parts": [text("which?")]});
        task
    };
    let message = json!({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [text("hm")]}});
    let waits = Waits { state: TaskState::InputRequired, at: None, said: "q".into() };
    trail.upstream.waits = Some(waits);
    for (then, expected) in [
        (asks("INPUT_REQUIRED", "q"), ["INPUT_REQUIRED m:hm"].as_slice()),
        (task("INPUT_REQUIRED", &json!([]), &json!([])), &["linked t/c", "INPUT_REQUIRED m:hm"]),
        (asks("INPUT_REQUIRED", "q-2"), &["linked t/c", "INPUT_REQUIRED q-2:which?"]),
        (asks("COMPLETED", "bye"), &["COMPLETED bye:which?"]),
    ] {
        let mut seen = Seen::of(&trail, "u");
        assert_eq!(told(&mut seen, &message).unwrap(), ["linked t/c", "WORKING m:hm"]);
        assert!(seen.has_message() && !seen.is_settled(), "how the task is has to be asked");
        assert_eq!(told(&mut seen, &then).unwrap(), expected);
        assert!(!seen.has_message() && seen.is_settled());
    }
}

#[test]
fn what_is_wrong_is_named() {
    let problem = |frames: &[Value]| {
        let mut seen = Seen::of(&Trail::default(), "u");
        frames.iter().find_map(|frame| told(&mut seen, frame).err()).expect("something is wrong").0
    };
    let other = json!({"statusUpdate": {"taskId": "x", "status": {"state": "TASK_STATE_WORKING"}}});
    let good = task("WORKING", &json!([]), &json!([]));
    assert_eq!(problem(&[good.clone(), other]), "statusUpdate.taskId is 'x', and the task asked for is 't'");
    assert_eq!(problem(&[json!({"task": {"status": {"state": "TASK_STATE_WORKING"}}})]), "task.id is missing");
    let empty = task("WORKING", &json!([{"parts": []}]), &json!([]));
    assert_eq!(problem(&[empty]), "task.artifacts[0].parts is empty");
    let nameless = json!({"artifactUpdate": {"taskId": "t", "artifact": {"parts": []}}});
    assert_eq!(problem(&[good.clone(), nameless]), "artifactUpdate.artifact.artifactId is missing");
    let moved = json!({"statusUpdate": {"taskId": "t", "contextId": "d", "status": {"state": "TASK_STATE_WORKING"}}});
    let told = "statusUpdate.contextId is 'd', and the task belongs to 'c'";
    assert_eq!(problem(&[good.clone(), moved]), told);
    let spoken = |role: &str, task: &str| json!({"message": {"messageId": "m", "taskId": task, "role": role, "parts": [text("x")]}});
    assert_eq!(problem(&[good, spoken("ROLE_AGENT", "x")]), "message.taskId is 'x', and the task asked for is 't'");
    let told = "message.role is ROLE_USER, and an agent speaks as ROLE_AGENT";
    assert_eq!(problem(&[spoken("ROLE_USER", "")]), told);
}

#[test]
fn another_task_is_gone_on_in_only_where_it_is_of_the_same_conversation() {
    let answered = |context: &str| {
        let mut trail = Trail::default();
        (trail.upstream.task, trail.upstream.context) = ("before".into(), "c".into());
        let mut task = task("COMPLETED", &json!([]), &json!([]));
        task["task"]["contextId"] = json!(context);
        told(&mut Seen::of(&trail, "u"), &task)
    };
    assert_eq!(answered("c").unwrap(), ["linked t/c", "COMPLETED"]);
    for other in ["d", ""] {
        assert_eq!(answered(other).unwrap_err().0, "task.id is 't', and the task asked for is 'before'");
    }
}

#[test]
fn the_caller_s_own_words_are_nothing_the_agent_says() {
    let spoken = |id: &str| {
        json!({"statusUpdate": {"taskId": "t", "contextId": "c", "status": {"state": "TASK_STATE_SUBMITTED",
        "message": {"messageId": id, "role": "ROLE_USER", "parts": [text("ask")]}}}})
    };
    let mut seen = Seen::of(&Trail::default(), "u");
    assert_eq!(told(&mut seen, &spoken("u")).unwrap(), ["linked t/c"]);
    let Garbage(problem) = told(&mut seen, &spoken("v")).unwrap_err();
    assert_eq!(problem, "statusUpdate.status.message.role is ROLE_USER, and an agent speaks as ROLE_AGENT");
}

#[test]
fn what_has_one_id_or_none_is_told_apart() {
    let mut seen = Seen::of(&Trail::default(), "u");
    let artifact = |id: &str, said: &str| json!({"artifactId": id, "parts": [text(said)]});
    let artifacts = json!([
        artifact("a", "1"),
        artifact("a", "2"),
        artifact("artifact-4", "3"),
        {"parts": [text("4")]},
        artifact("a-2", "5"),
    ]);
    let said = |said: &str| json!({"messageId": "m", "role": "ROLE_AGENT", "parts": [text(said)]});
    let whole = task("COMPLETED", &artifacts, &json!([said("x"), said("y"), said("x")]));
    let lines = [
        "linked t/c",
        "WORKING m:x",
        "WORKING m-2:y",
        "a=1",
        "a-3=2",
        "artifact-4=3",
        "artifact-4-2=4",
        "a-2=5",
        "COMPLETED",
    ];
    assert_eq!(told(&mut seen, &whole).unwrap(), lines);
    assert_eq!(told(&mut seen, &whole).unwrap(), ["COMPLETED"], "and once");
}

#[test]
fn what_grew_under_its_id_is_not_told_again_from_the_history() {
    let mut seen = Seen::of(&Trail::default(), "u");
    let said = |id: &str, said: &str| json!({"messageId": id, "role": "ROLE_AGENT", "parts": [text(said)]});
    let mut whole = task("WORKING", &json!([]), &json!([said("m", "he")]));
    whole["task"]["status"]["message"] = said("m", "hello");
    assert_eq!(told(&mut seen, &whole).unwrap(), ["linked t/c", "WORKING m:hello"]);
    let mut whole = task("COMPLETED", &json!([]), &json!([said("m", "he"), said("m", "hello")]));
    whole["task"]["status"]["message"] = said("n", "bye");
    assert_eq!(told(&mut seen, &whole).unwrap(), ["COMPLETED n:bye"]);
}

/// A task that waits, as the agent shows it.
fn waiting(at: &str, said: &str) -> Value {
    let mut waiting = task("INPUT_REQUIRED", &json!([]), &json!([]));
    if !at.is_empty() {
        waiting["task"]["status"]["timestamp"] = json!(at);
    }
    if !said.is_empty() {
        waiting["task"]["status"]["message"] = json!({"messageId": said, "role": "ROLE_AGENT", "parts": [text("?")]});
    }
    waiting
}

#[test]
fn what_an_agent_of_gopherhole_said_last_is_its_artifact() {
    let answered = |messages: Value| {
        let mut answer = task("COMPLETED", &json!([]), &json!([]));
        answer["task"]["messages"] = messages;
        told(&mut Seen::of(&Trail::default(), "u"), &answer).unwrap()
    };
    let said = |role: &str, text: &str| json!({"role": role, "parts": [{"kind": "text", "text": text}]});
    let lines = answered(json!([said("user", "hello"), said("agent", "hook: hello"), said("user", "x")]));
    assert_eq!(lines, ["linked t/c", "reply=hook: hello", "COMPLETED"]);
    assert_eq!(answered(json!([said("user", "hello")])), ["linked t/c", "COMPLETED"]);
    assert_eq!(answered(json!("none")), ["linked t/c", "COMPLETED"]);
}

/// The trail of a reply to a task that waited so.
fn replied(before: &Value) -> Trail {
    let mut seen = Seen::of(&Trail::default(), "u");
    told(&mut seen, before).unwrap();
    Trail { upstream: seen.upstream().clone(), state: TaskState::Submitted, ..Trail::default() }
}

#[test]
fn a_task_that_waits_as_before_the_reply_has_not_answered_it() {
    let (early, late) = ("2026-01-31T12:00:00Z", "2026-01-31T12:00:01Z");
    let mut made = waiting(early, "q");
    made["task"]["artifacts"] = json!([{"artifactId": "a", "parts": [text("new")]}]);
    let mut said = waiting(early, "");
    said["task"]["history"] = json!([{"messageId": "h", "role": "ROLE_AGENT", "parts": [text("Which?")]}]);
    // Whether it is an answer in a receipt, and where it was asked for.
    for (before, now, in_receipt, if_asked) in [
        (waiting(early, "q"), waiting(early, "q"), false, false),
        (waiting(early, "q"), waiting(early, ""), false, false),
        (waiting(early, "q"), waiting(early, "r"), true, true),
        (waiting(early, "q"), waiting(late, "q"), true, true),
        (waiting(early, ""), waiting(late, ""), true, true),
        (waiting(early, "q"), made, true, false),
        (waiting(early, ""), said, true, false),
        (waiting("", "q"), waiting("", "q"), true, false),
        (waiting("", ""), waiting("", ""), true, false),
        (waiting("", ""), task("WORKING", &json!([]), &json!([])), false, false),
        (waiting(early, "q"), task("COMPLETED", &json!([]), &json!([])), true, true),
    ] {
        let trail = replied(&before);
        let mut seen = Seen::of(&trail, "v");
        told(&mut seen, &now).unwrap();
        assert_eq!(seen.is_settled(), in_receipt, "{before} and then {now}");
        let mut seen = Seen::of(&trail, "v");
        seen.ask();
        told(&mut seen, &now).unwrap();
        assert_eq!(seen.is_settled(), if_asked, "{before} and then {now}");
        let mut seen = Seen::of(&trail, "v");
        seen.believe();
        told(&mut seen, &now).unwrap();
        let settles = now["task"]["status"]["state"] != "TASK_STATE_WORKING";
        assert_eq!(seen.is_settled(), settles, "a plain answer is one");
    }
}

#[test]
fn a_task_that_has_moved_may_wait_as_before() {
    let mut seen = Seen::of(&replied(&waiting("", "")), "v");
    seen.ask();
    told(&mut seen, &waiting("", "")).unwrap();
    assert!(seen.is_as_before() && !seen.is_settled());
    assert_eq!(told(&mut seen, &task("WORKING", &json!([]), &json!([]))).unwrap(), ["WORKING"]);
    assert_eq!(told(&mut seen, &waiting("", "")).unwrap(), ["INPUT_REQUIRED"]);
    assert!(seen.is_settled());
}

#[test]
fn what_a_task_waits_or_ends_with_is_told_with_that_status() {
    let mut seen = Seen::of(&Trail::default(), "u");
    let status = |state: &str| {
        json!({"statusUpdate": {"taskId": "t", "contextId": "c", "status": {"state": format!("TASK_STATE_{state}"),
        "message": {"messageId": "q", "role": "ROLE_AGENT", "parts": [text("?")]}}}})
    };
    assert_eq!(told(&mut seen, &status("WORKING")).unwrap(), ["linked t/c", "WORKING q:?"]);
    assert!(told(&mut seen, &status("WORKING")).unwrap().is_empty(), "once on the way");
    assert_eq!(told(&mut seen, &status("AUTH_REQUIRED")).unwrap(), ["linked t/c", "AUTH_REQUIRED q:?"]);
    let trail = Trail { said: vec!["q".into()], ..replied(&waiting("2026-01-31T12:00:00Z", "p")) };
    let mut resumed = Seen::of(&trail, "v");
    assert_eq!(told(&mut resumed, &waiting("", "q")).unwrap()[1..], ["INPUT_REQUIRED q:?"]);
}

#[test]
fn what_a_history_holds_is_told_or_named() {
    let mut seen = Seen::of(&Trail::default(), "u");
    let history = json!([
        {"messageId": "u", "parts": [text("ask")]},
        {"messageId": "m", "parts": [text("nobody's")]},
    ]);
    let reports = told(&mut seen, &task("COMPLETED", &json!([]), &history)).unwrap();
    assert_eq!(reports, ["linked t/c", "WORKING m:nobody's", "COMPLETED"], "what has no role is the agent's");
    let mut seen = Seen::of(&Trail::default(), "u");
    let garbage = told(&mut seen, &task("COMPLETED", &json!([]), &json!([{"foo": 1}]))).unwrap_err();
    assert_eq!(garbage, Garbage("task.history[0] has neither role nor parts".into()));
}

#[test]
fn a_part_of_a_history_is_looked_at_like_any_other() {
    for (role, part, problem) in [
        ("ROLE_AGENT", json!({}), "must hold one of text, raw, url and data"),
        ("ROLE_USER", json!({}), "must hold one of text, raw, url and data"),
        (
            "ROLE_AGENT",
            json!({"text": "a", "url": "http://h"}),
            "must hold only one of text, raw, url and data, got text and url",
        ),
    ] {
        let mut seen = Seen::of(&Trail::default(), "u");
        let history = json!([
            {"messageId": "h", "role": "ROLE_AGENT", "parts": [text("hm")]},
            {"messageId": "m", "role": role, "parts": [text("x"), part]},
        ]);
        let garbage = told(&mut seen, &task("WORKING", &json!([]), &history)).unwrap_err();
        assert_eq!(garbage, Garbage(format!("task.history[1].parts[1] {problem}")));
    }
}

#[test]
fn a_message_that_holds_nothing_is_left_out_and_its_status_counts() {
    let silent = |id: &str| json!({"messageId": id, "role": "ROLE_AGENT", "parts": []});
    let mut seen = Seen::of(&Trail::default(), "u");
    let mut whole = task("WORKING", &json!([]), &json!([silent("h")]));
    whole["task"]["status"]["message"] = silent("s");
    assert_eq!(told(&mut seen, &whole).unwrap(), ["linked t/c", "WORKING"]);
    assert!(told(&mut seen, &json!({"message": silent("m")})).unwrap().is_empty());
    let mut update = json!({"statusUpdate": {"taskId": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED",
        "message": silent("e")}}});
    assert_eq!(told(&mut seen, &update).unwrap(), ["COMPLETED"]);
    let mut seen = Seen::of(&Trail::default(), "u");
    update["statusUpdate"]["status"]["message"]["metadata"] = json!({"k": 1});
    assert_eq!(told(&mut seen, &update).unwrap(), ["linked t/c", "COMPLETED e:"], "but for one with metadata");
}
