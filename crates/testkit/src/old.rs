//! The same operations in A2A 0.3: what a test says in 1.0 is sent in 0.3, and what comes back is read as 1.0.

use crate::client::{Binding, Refusal, json_post, with_query};
use crate::http::{Request, Response};
use crate::sse::Event;
use flotilla_protocol::a2a::error::Reason;
use flotilla_protocol::a2a::method::Method;
use flotilla_protocol::a2a::request as r;
use flotilla_protocol::a2a::request::Request as Asked;
use flotilla_protocol::proto03::file::Files;
use flotilla_protocol::proto03::json as proto;
use flotilla_protocol::v03::{V03, answer, error, method};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn operation(name: &str) -> Method {
    Method::from_name(name).unwrap_or_else(|| panic!("there is no operation {name}"))
}

/// The parameters in 0.3; those that 1.0 does not take either are sent as they are.
fn params(method: Method, params: &Value) -> Value {
    fn read<T: DeserializeOwned>(params: &Value) -> Result<T, serde_json::Error> {
        serde_json::from_str(&params.to_string())
    }
    let asked = match method {
        Method::SendMessage => read(params).map(Asked::SendMessage),
        Method::SendStreamingMessage => read(params).map(Asked::SendStreamingMessage),
        Method::GetTask => read(params).map(Asked::GetTask),
        Method::ListTasks => read(params).map(Asked::ListTasks),
        Method::CancelTask => read(params).map(Asked::CancelTask),
        Method::SubscribeToTask => read(params).map(Asked::SubscribeToTask),
        Method::CreatePushConfig => read::<r::PushConfig>(params).map(Asked::CreatePushConfig),
        Method::GetPushConfig => read(params).map(Asked::GetPushConfig),
        Method::ListPushConfigs => read(params).map(Asked::ListPushConfigs),
        Method::DeletePushConfig => read(params).map(Asked::DeletePushConfig),
        Method::GetExtendedAgentCard => read(params).map(Asked::GetExtendedAgentCard),
    };
    asked.map_or_else(|_| params.clone(), |asked| json!(V03(asked)))
}

pub fn request(binding: Binding, agent: Option<&str>, name: &str, said: &Value) -> Request {
    let operation = operation(name);
    let said = params(operation, said);
    match binding {
        Binding::JsonRpc => {
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": method::name(operation), "params": said});
            let base = agent.map(|agent| format!("/agents/{agent}")).unwrap_or_default();
            json_post(&format!("{base}/a2a"), body.to_string())
        }
        Binding::HttpJson => rest(agent, operation, said),
        Binding::Grpc => panic!("gRPC of 0.3 is tested elsewhere"),
    }
}

fn rest(agent: Option<&str>, operation: Method, said: Value) -> Request {
    let base = agent.map_or_else(|| "/v1".to_owned(), |agent| format!("/agents/{agent}/v1"));
    let text = |name: &str| said[name].as_str().map(crate::client::escape).unwrap_or_default();
    let mut query = said.as_object().cloned().unwrap_or_default();
    let mut with = |target: String, taken: &[&str]| {
        taken.iter().for_each(|name| drop(query.remove(*name)));
        with_query(target, &query)
    };
    let push = |task: &str| format!("{base}/tasks/{task}/pushNotificationConfigs");
    let config = "pushNotificationConfigId";
    match operation {
        Method::SendMessage => json_post(&format!("{base}/message:send"), said.to_string()),
        Method::SendStreamingMessage => json_post(&format!("{base}/message:stream"), said.to_string()),
        Method::GetTask => Request::get(&with(format!("{base}/tasks/{}", text("id")), &["id"])),
        Method::ListTasks => Request::get(&with(format!("{base}/tasks"), &[])),
        Method::CancelTask => json_post(&format!("{base}/tasks/{}:cancel", text("id")), said.to_string()),
        Method::SubscribeToTask => Request::get(&with(format!("{base}/tasks/{}:subscribe", text("id")), &["id"])),
        Method::CreatePushConfig => json_post(&push(&text("taskId")), said.to_string()),
        Method::ListPushConfigs => Request::get(&with(push(&text("id")), &["id"])),
        Method::GetPushConfig => {
            Request::get(&with(format!("{}/{}", push(&text("id")), text(config)), &["id", config]))
        }
        Method::DeletePushConfig => {
            let target = with(format!("{}/{}", push(&text("id")), text(config)), &["id", config]);
            Request::new("DELETE", &target)
        }
        Method::GetExtendedAgentCard => panic!("0.3 has no such path: /v1/card is the card itself"),
    }
}

/// A result of 0.3, in either of its forms, as 1.0 has it.
fn newer(method: Method, json: &Value) -> Value {
    let text = json.to_string();
    let is_kind = text.contains("\"kind\":") || text.contains("\"taskId\":\"") && json.get("name").is_none();
    let read = |text: String| serde_json::from_str(&text).expect("JSON");
    let proto_task =
        |task: &Value| json!(proto::task(task.to_string().as_bytes(), Files::Bytes).expect("a task in ProtoJSON"));
    match method {
        Method::DeletePushConfig => json!({}),
        _ if is_kind => read(answer::upgraded(method, &text).unwrap_or_else(|error| panic!("{error}: {text}"))),
        Method::SendMessage | Method::SendStreamingMessage | Method::SubscribeToTask => {
            json!(proto::frame(text.as_bytes(), Files::Bytes).unwrap_or_else(|error| panic!("{error:?}: {text}")))
        }
        Method::GetTask | Method::CancelTask => proto_task(json),
        Method::ListTasks => {
            let tasks: Vec<Value> = json["tasks"].as_array().expect("tasks").iter().map(proto_task).collect();
            let mut page = json.clone();
            page["tasks"] = tasks.into();
            page
        }
        Method::CreatePushConfig | Method::GetPushConfig => {
            json!(proto::push_config(text.as_bytes()).unwrap_or_else(|error| panic!("{error:?}: {text}")))
        }
        Method::ListPushConfigs if json.is_array() => read(answer::upgraded(method, &text).expect("a list")),
        Method::ListPushConfigs => json!(proto::push_list(text.as_bytes()).expect("a list in ProtoJSON")),
        Method::GetExtendedAgentCard => json.clone(),
    }
}

pub fn answered(name: &str, response: &Response) -> Result<Value, Refusal> {
    if let Some(refusal) = refusal(response) {
        return Err(refusal);
    }
    let body = response.json();
    assert_eq!(response.status, 200, "{body}");
    Ok(newer(operation(name), body.get("result").unwrap_or(&body)))
}

/// An event of a stream with its frame as 1.0 has it.
pub fn event(event: Event) -> Event {
    if event.data.is_none() {
        return event;
    }
    let mut json = event.json();
    if json.get("error").is_some() || json.get("code").is_some() {
        return event;
    }
    match json.get_mut("result") {
        Some(result) => *result = newer(Method::SubscribeToTask, result),
        None => json = newer(Method::SubscribeToTask, &json),
    }
    Event { data: Some(json.to_string()), ..event }
}

/// The text of an error without the words it begins with in 0.3.
fn unworded(message: String, reason: &str) -> String {
    let known = Reason::ALL.into_iter().find(|known| known.row().reason == reason);
    let Some(words) = known.and_then(error::words).filter(|_| !message.starts_with("Invalid parameters")) else {
        return message;
    };
    let rest = message.strip_prefix(&format!("{words}. "));
    rest.unwrap_or_else(|| panic!("{reason} is told without '{words}': {message}")).to_owned()
}

/// A refusal of 0.3; none if this is no refusal, or one of 1.0. A stream that is refused is one event.
pub fn refusal(response: &Response) -> Option<Refusal> {
    let text = response.text();
    let text = text.split("data: ").nth(1).unwrap_or(text);
    let body: Value = serde_json::from_str(text.trim()).ok()?;
    let error = body.get("error").unwrap_or(&body);
    let (code, data) = (error.get("code")?.as_i64()?, error.get("data")?.as_object()?);
    let mut metadata = data.clone();
    let mut take = |name: &str| metadata.remove(name).unwrap_or_default();
    let (reason, domain, fields) = (take("reason"), take("domain"), take("fieldViolations"));
    let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("not a text in {body}")).to_owned();
    let fields = fields.as_array().cloned().unwrap_or_default();
    Some(Refusal {
        http: response.status,
        // HTTP+JSON of 1.0 repeats the status here.
        code: if body.get("error").is_some() { code } else { response.status.into() },
        status: None,
        message: unworded(text(&error["message"]), &text(&reason)),
        reason: text(&reason),
        domain: text(&domain),
        metadata: metadata.into(),
        violations: fields.iter().map(|one| (text(&one["field"]), text(&one["description"]))).collect(),
    })
}
