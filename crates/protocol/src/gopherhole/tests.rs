//! What clients of the dialect send is read, and what they are sent is what their models take.

use super::{
    Asked, OWN_METHODS, Parties, is_own_method, page, payload, push_config, read, reports, sent, speaks_of, task,
};
use crate::a2a::model::{Artifact, Message, Part, Role, Task, TaskState, TaskStatus};
use crate::a2a::request::ListTasksResponse;
use crate::hub_frame::TaskResponse;
use crate::time::Millis;
use crate::wire::{AnyValue, Base64, Json};
use crate::work::{Contents, Report};
use serde_json::{Value, json};
use std::sync::Arc;

fn asked(params: Value) -> Result<Asked, String> {
    read("SendMessage", &params.to_string(), "gph-1".into()).map_err(|refusal| refusal.message)
}

#[test]
fn a_message_to_an_agent_has_an_id_and_the_callers_role() {
    let params = json!({
        "message": {"role": "agent", "parts": [
            {"kind": "text", "text": "hi"},
            {"kind": "file", "name": "a.txt", "mimeType": "text/plain", "data": "aGk="},
            {"kind": "file", "uri": "https://x.example/y"},
            {"kind": "data", "mimeType": "application/json", "data": "{\"n\": 1.0}"},
        ]},
        "configuration": {"agentId": "weather", "contextId": "c", "x-ttl": 5, "pollIntervalMs": 10},
    });
    let Ok(Asked::Send { to, request }) = asked(params) else { panic!("a message to an agent") };
    let message = request.message.clone().unwrap();
    assert_eq!((to.as_str(), message.role, message.context_id.as_str()), ("weather", Role::User, "c"));
    assert!(message.message_id.starts_with("gph-"));
    assert_eq!(message.parts[0].text.as_deref(), Some("hi"));
    assert_eq!(message.parts[1].raw, Some(Base64::encode(b"hi")));
    assert_eq!(message.parts[2].url.as_deref(), Some("https://x.example/y"));
    assert_eq!(message.parts[3].data, AnyValue(Some(Json::new("{\"n\": 1.0}".into()).unwrap())));
    assert_eq!(request.ttl(), Ok(Some(5)));
}

#[test]
fn its_own_methods_are_known_by_name() {
    assert!(OWN_METHODS.into_iter().all(is_own_method) && is_own_method("x-gopherhole/workspace.list"));
    assert!(!["SendMessage", "message/send", "tasks/get", "x-other/agents"].into_iter().any(is_own_method));
}

#[test]
fn secrets_are_refused_rather_than_dropped() {
    let params =
        json!({"message": {"parts": []}, "configuration": {"agentId": "a", "x-gopherhole-secrets": {"k": "v"}}});
    assert!(asked(params).unwrap_err().contains("secrets"));
    assert!(read("x-gopherhole/workspace.list", "{}", String::new()).unwrap_err().message.contains("workspace.list"));
}

fn done() -> Task {
    let said = Message { parts: vec![Part::text("All done")], role: Role::Agent, ..Message::default() };
    let first = Message { message_id: "gph-7".into(), parts: vec![Part::text("hi")], ..Message::default() };
    Task {
        id: "t".into(),
        context_id: "c".into(),
        status: TaskStatus {
            state: TaskState::Completed,
            message: Some(Arc::new(said)),
            timestamp: Some(Millis(0).into()),
            ..TaskStatus::default()
        },
        history: vec![Arc::new(first)],
        ..Task::default()
    }
}

#[test]
fn a_task_is_bare_and_its_answer_is_an_artifact() {
    let parties = Parties { client: "me".into(), server: "weather".into() };
    let written = task(&done(), &parties);
    assert_eq!((&written["clientAgentId"], &written["serverAgentId"]), (&json!("me"), &json!("weather")));
    assert_eq!(task(&done(), &Parties::default()).get("clientAgentId"), None, "nobody is called nothing");
    assert_eq!(
        written["status"],
        json!({"state": "completed", "message": "All done", "timestamp": "1970-01-01T00:00:00.000Z"})
    );
    assert_eq!(written["artifacts"][0]["parts"], json!([{"kind": "text", "text": "All done"}]));
    assert_eq!(written["history"][0]["role"], "user");
    assert!(speaks_of(&done()) && !speaks_of(&Task::default()));
    let list = ListTasksResponse { tasks: vec![done()], next_page_token: String::new(), page_size: 1, total_size: 1 };
    assert_eq!(page(&list, Some(TaskState::Working), &[])["tasks"], json!([]));
    let page = page(&list, None, &[Parties { client: "me".into(), server: "weather".into() }]);
    assert_eq!((&page["totalSize"], page.get("nextPageToken")), (&json!(1), None));
    assert_eq!(
        (&page["tasks"][0]["clientAgentId"], &page["tasks"][0]["serverAgentId"]),
        (&json!("me"), &json!("weather"))
    );
}

#[test]
fn what_is_done_when_its_message_is_answered_ends_the_history_with_the_reply() {
    let shown = |task: &Task, most: Option<i32>| sent(task, &Parties::default(), most)["history"].clone();
    let reply = json!({"role": "agent", "parts": [{"kind": "text", "text": "All done"}]});
    let history = shown(&done(), None);
    assert_eq!((history.as_array().map(Vec::len), &history[1]), (Some(2), &reply));
    assert_eq!(shown(&done(), Some(1)), json!([reply]));
    assert_eq!(shown(&Task { history: Vec::new(), ..done() }, Some(0)), json!([]));
    let works = TaskStatus { state: TaskState::Working, ..TaskStatus::default() };
    assert_eq!(shown(&Task { status: works, ..done() }, None).as_array().map(Vec::len), Some(1));
}

#[test]
fn submitted_means_that_nobody_is_there() {
    let waits = |message: Option<Arc<Message>>| {
        let status = TaskStatus { state: TaskState::Submitted, message, ..TaskStatus::default() };
        task(&Task { status, ..done() }, &Parties::default())["status"]["state"].clone()
    };
    let why = Message { parts: vec![Part::text("not connected")], ..Message::default() };
    assert_eq!((waits(None), waits(Some(Arc::new(why)))), (json!("working"), json!("submitted")));
}

#[test]
fn every_part_is_one_its_models_take() {
    let data = Part { data: AnyValue(Some(Json::new("[1]".into()).unwrap())), ..Part::default() };
    let raw = Part { raw: Some(Base64::encode(b"hi")), filename: "a".into(), ..Part::default() };
    let message = Message { parts: vec![data, raw], role: Role::Agent, ..Message::default() };
    let parts = payload(&message)["parts"].clone();
    assert_eq!(parts[0], json!({"kind": "data", "mimeType": "application/json", "data": "[1]"}));
    assert_eq!(parts[1], json!({"kind": "file", "name": "a", "data": "aGk="}));
}

#[test]
fn responses_become_reports() {
    let read = |response: Value, known: bool| {
        let response: TaskResponse = serde_json::from_value(response).unwrap();
        reports(&response, |_, _| known).map_err(|refusal| refusal.message)
    };
    let chunk = json!({"taskId": "t", "artifact": {"artifactId": "a", "parts": [{"kind": "text", "text": "x"}]}, "lastChunk": false});
    let piece = read(chunk.clone(), true);
    let Ok([Report::Artifact { append, last_chunk, artifact, .. }]) = piece.as_deref() else { panic!("a chunk") };
    assert_eq!(
        (*append, *last_chunk, artifact.as_ref()),
        (true, false, &Artifact { artifact_id: "a".into(), ..Artifact::default() })
    );
    assert!(matches!(read(chunk, false).as_deref(), Ok([Report::Artifact { append: false, .. }])));
    let whole = json!({"taskId": "t", "status": {"state": "completed", "message": "ok"}, "artifact": {"parts": []}});
    let ended = read(whole.clone(), false);
    let Ok([Report::Status { state, contents, .. }]) = ended.as_deref() else { panic!("nothing but the status") };
    assert_eq!((*state, contents), (TaskState::Completed, &Some(Contents::text("ok"))));
    let uri = "urn:flotilla:ext:fleet-handshake:2.0";
    let said = json!({"role": "agent", "parts": [], "metadata": {uri: {"a": 1}, "other": 2}});
    let beside = read(json!({"taskId": "t", "status": {"state": "completed", "message": said}}), false);
    let Ok([Report::Status { metadata: Some(metadata), .. }]) = beside.as_deref() else { panic!("{beside:?}") };
    assert_eq!(metadata.0.text(), json!({uri: {"a": 1}}).to_string(), "how it went, and nothing else");
    assert!(read(json!({"taskId": "t", "status": {"state": "finished"}}), false).unwrap_err().contains("'finished'"));
    assert_eq!(read(whole, true).map(|reports| reports.len()), Ok(2), "one that was made may end with it");
    let empty = json!({"taskId": "t", "artifact": {}});
    assert!(read(empty, false).unwrap_err().contains("artifact.parts"));
    assert!(read(json!({"taskId": "t"}), false).unwrap_err().contains("status"));
}

#[test]
fn what_is_for_the_owner_goes_into_its_log() {
    let read = |response: Value| {
        let response: TaskResponse = serde_json::from_value(response).unwrap();
        reports(&response, |_, _| false).map_err(|refusal| refusal.message)
    };
    let used = json!([{"type": "usage", "input_tokens": 600}]);
    let said = json!({"role": "agent", "parts": [{"kind": "text", "text": "w"}], "blocks": used});
    for (response, count) in [
        (json!({"taskId": "t", "blocks": used}), 1),
        (json!({"taskId": "t", "status": {"state": "working", "message": said}}), 2),
        (json!({"taskId": "t", "artifact": {"parts": [{"kind": "text", "text": "x"}], "blocks": used}}), 2),
    ] {
        let told = read(response.clone()).unwrap();
        assert!(told.len() == count && matches!(&told[0], Report::Note { blocks } if blocks.len() == 1), "{response}");
    }
    let nameless = json!({"taskId": "t", "status": {"state": "working", "message": {"parts": [], "blocks": [{}]}}});
    assert!(read(nameless).unwrap_err().contains("type"), "what cannot be taken is told");
}

#[test]
fn push_configs_are_flat_wherever_they_stand() {
    let config =
        json!({"url": "https://x.example/h", "token": "t", "authentication": {"scheme": "Bearer", "credentials": "c"}});
    let inline = json!({"message": {"parts": []}, "configuration": {"agentId": "a", "pushNotificationConfig": config}});
    let Ok(Asked::Send { request, .. }) = asked(inline) else { panic!("a message") };
    let sent = request.configuration.and_then(|configuration| configuration.push_config).unwrap();
    let method = "CreateTaskPushNotificationConfig";
    let new = |params: Value| match read(method, &params.to_string(), String::new()) {
        Ok(Asked::CreatePush(config)) => *config,
        other => panic!("{other:?}"),
    };
    let beside = new(json!({"taskId": "t", "config": config}));
    assert_eq!(beside, crate::a2a::request::PushConfig { task_id: "t".into(), ..sent });
    let mut flat = config;
    flat["taskId"] = json!("t");
    assert_eq!(new(flat), beside, "as in A2A 1.0");
    assert_eq!(beside.authentication.as_ref().map(|info| info.scheme.as_str()), Some("Bearer"));
    assert_eq!(push_config(&beside)["taskId"], "t");
    let slip = json!({"taskId": "t", "config": {"url": 5}}).to_string();
    assert!(read(method, &slip, String::new()).unwrap_err().message.contains("url"));
}
