//! A2A 0.3 beside 1.0: whatever form an agent answers in, this side reads it as 1.0.

use super::error::ClientError;
use super::stated::{self, Stated};
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::method::Method;
use flotilla_protocol::a2a::model::TaskState;
use flotilla_protocol::proto03::file::Files;
use flotilla_protocol::proto03::json as proto;
use flotilla_protocol::v03;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// What a frame of a stream, or the answer to a send, is wrapped in, where it is.
const WRAPPERS: [&str; 7] =
    ["task", "message", "msg", "statusUpdate", "status_update", "artifactUpdate", "artifact_update"];

/// Who wrote an answer's JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    Agent,
    /// This side, from what the agent said in another form. What is as it is by default is left out.
    Here,
}

/// An answer and its JSON. Some agents answer in 0.3 whatever they are asked in; that is read too.
pub fn read<T: DeserializeOwned + Stated>(
    method: Method,
    json: String,
    writer: Writer,
) -> Result<(T, String), ClientError> {
    check_one(method, &json)?;
    let problem = match serde_json::from_str::<T>(&json) {
        Ok(value) if value.state() == Some(TaskState::Unspecified) && writer == Writer::Agent => {
            return stated::check(&json).map(|()| (value, json));
        }
        Ok(value) if !holds_old_files(&json) => return Ok((value, json)),
        Ok(value) => return Ok(in_current(method, &json).unwrap_or((value, json))),
        Err(problem) => problem,
    };
    // Parts have the same name in 1.0 alone: what is wrong in one of them is no sign of 0.3.
    let unreadable = ClientError::unreadable::<T>(&json, &problem);
    if unreadable.is_unusable() && unreadable.to_string().contains("parts[") {
        return Err(unreadable);
    }
    if wrapped(method, &json).len() > 1 {
        return Err(unreadable);
    }
    in_current(method, &json).ok_or(unreadable)
}

/// An answer of 0.3, where it is one.
fn in_current<T: DeserializeOwned>(method: Method, json: &str) -> Option<(T, String)> {
    let json = upgraded(method, json, Files::Text).ok()?;
    Some((serde_json::from_str(&json).ok()?, json))
}

/// Whether files in it may be as 0.3 has them. Some write tasks as 1.0 has them around parts that are not.
fn holds_old_files(json: &str) -> bool {
    json.contains("\"file\"") && json.contains("\"kind\"")
}

/// A list in the place of what is one thing is none.
fn check_one(method: Method, json: &str) -> Result<(), ClientError> {
    if is_one(method) && json.trim_start().starts_with('[') {
        return Err(ClientError::malformed("it is a JSON array, and should be an object"));
    }
    Ok(())
}

/// Whether an operation brings a task, a message or an update, one at a time.
fn is_one(method: Method) -> bool {
    let tasks = matches!(method, Method::GetTask | Method::CancelTask);
    tasks || matches!(method, Method::SendMessage | Method::SendStreamingMessage | Method::SubscribeToTask)
}

/// The JSON of an answer of 0.3, in either of its forms, as 1.0 has it; files as the agent has them.
pub fn upgraded(method: Method, json: &str, files: Files) -> Result<String, ClientError> {
    check_one(method, json)?;
    if let [first, second, ..] = wrapped(method, json).as_slice() {
        return Err(ClientError::malformed(format!("it holds {first} and {second}, and may hold one of them")));
    }
    if is_proto(method, json) && !shows_parts(json) {
        return from_proto(method, json, files).map_err(|refusal| ClientError::malformed(refusal.message));
    }
    let inner = unwrapped(method, json);
    let inner = inner.as_deref().unwrap_or(json);
    let upgraded = v03::answer::upgraded(method, inner).map_err(|problem| unreadable(inner, problem))?;
    if is_one(method) {
        stated::check_old(inner)?;
    }
    Ok(upgraded)
}

/// What is no JSON is told with how it begins, and what is JSON with the place of what is wrong. It is read once more to
/// tell the two apart, which only garbage costs.
fn unreadable(json: &str, problem: serde_json::Error) -> ClientError {
    match serde_json::from_str::<IgnoredAny>(json) {
        Ok(_) => ClientError::malformed(problem),
        Err(problem) => ClientError::unparsed(json, &problem),
    }
}

/// Whether it is ProtoJSON of the 0.3 proto: told by names the other form does not have.
fn is_proto(method: Method, json: &str) -> bool {
    let Ok(value) = serde_json::from_str::<Value>(json) else { return false };
    let is_typed = |value: &Value| value.get("kind").is_some_and(Value::is_string);
    if is_typed(&value) {
        return false;
    }
    // The proto writes states and roles in its own way.
    let is_plain = |inner: &Value| {
        let words = [&inner["status"]["state"], &inner["role"]].into_iter().filter_map(Value::as_str);
        words.into_iter().any(|word| !word.starts_with("TASK_STATE_") && !word.starts_with("ROLE_"))
    };
    match method {
        Method::SendMessage | Method::SendStreamingMessage | Method::SubscribeToTask => {
            let is_of_proto = |inner: &Value| inner.is_object() && !is_typed(inner) && !is_plain(inner);
            WRAPPERS.iter().filter_map(|name| value.get(*name)).any(is_of_proto)
        }
        Method::GetTask | Method::CancelTask => {
            let state = value["status"]["state"].as_str().unwrap_or("TASK_STATE_UNSPECIFIED");
            state.starts_with("TASK_STATE_")
        }
        Method::CreatePushConfig | Method::GetPushConfig => value.get("name").is_some_and(Value::is_string),
        Method::ListPushConfigs => value.is_object(),
        Method::ListTasks | Method::DeletePushConfig | Method::GetExtendedAgentCard => false,
    }
}

/// Whether messages in it hold `parts`, as in every form but that of the proto; some mix what they took from several.
fn shows_parts(json: &str) -> bool {
    #[derive(Deserialize)]
    struct Held {
        kind: Option<IgnoredAny>,
        raw: Option<IgnoredAny>,
        url: Option<IgnoredAny>,
        data: Option<Value>,
    }
    impl Held {
        /// In the proto all but text is in something, and data in `data`.
        fn show(&self) -> bool {
            let is_bare = self.data.as_ref().is_some_and(|data| !data["data"].is_object());
            self.kind.is_some() || self.raw.is_some() || self.url.is_some() || is_bare
        }
    }
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Parts {
        parts: Vec<Held>,
    }
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Signs {
        parts: Option<IgnoredAny>,
        // The proto has parts here too.
        artifacts: Option<Vec<Parts>>,
        artifact: Option<Parts>,
        #[serde(alias = "artifact_update", rename = "artifactUpdate")]
        artifact_update: Option<Box<Signs>>,
        status: Option<Box<Signs>>,
        message: Option<Box<Signs>>,
        task: Option<Box<Signs>>,
        #[serde(alias = "status_update", rename = "statusUpdate")]
        status_update: Option<Box<Signs>>,
        history: Option<Vec<Signs>>,
    }
    impl Signs {
        fn show(&self) -> bool {
            let within = [&self.status, &self.message, &self.task, &self.status_update, &self.artifact_update];
            let within = within.into_iter().flatten();
            let mut artifacts = self.artifacts.iter().flatten().chain(&self.artifact);
            self.parts.is_some()
                || artifacts.any(|artifact| artifact.parts.iter().any(Held::show))
                || within.into_iter().any(|inner| inner.show())
                || self.history.iter().flatten().any(Self::show)
        }
    }
    serde_json::from_str::<Signs>(json).is_ok_and(|signs| signs.show())
}

fn from_proto(method: Method, json: &str, files: Files) -> Result<String, Refusal> {
    fn written<T: Serialize>(value: &T) -> Result<String, Refusal> {
        serde_json::to_string(value).map_err(|error| Refusal::invalid("", error.to_string()))
    }
    let bytes = json.as_bytes();
    match method {
        Method::GetTask | Method::CancelTask => written(&proto::task(bytes, files)?),
        Method::CreatePushConfig | Method::GetPushConfig => written(&proto::push_config(bytes)?),
        Method::ListPushConfigs => written(&proto::push_list(bytes)?),
        _ => written(&proto::frame(bytes, files)?),
    }
}

/// What is wrapped as in the proto form, but written in the other one.
fn unwrapped(method: Method, json: &str) -> Option<String> {
    let name = wrapped(method, json).into_iter().next()?;
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(json).ok()?;
    members.get(name).map(|inner| inner.get().to_owned())
}

/// The members that wrap what a send or a stream brings; more than one is not A2A.
fn wrapped(method: Method, json: &str) -> Vec<&'static str> {
    if !matches!(method, Method::SendMessage | Method::SendStreamingMessage | Method::SubscribeToTask) {
        return Vec::new();
    }
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(json).unwrap_or_default();
    if members.contains_key("kind") {
        return Vec::new();
    }
    let is_there = |name: &&str| members.get(*name).is_some_and(|member| member.get() != "null");
    WRAPPERS.into_iter().filter(is_there).collect()
}

/// Extensions under the name their header has in 0.3.
pub fn old_headers(parameters: &[(String, String)]) -> impl Iterator<Item = (String, String)> {
    let named = parameters.iter().filter(|(name, _)| name.eq_ignore_ascii_case("a2a-extensions"));
    named.map(|(_, value)| ("X-A2A-Extensions".to_owned(), value.clone()))
}

#[cfg(test)]
mod tests {
    use super::{Files, Writer, read, upgraded};
    use crate::client::frame::Sent;
    use flotilla_protocol::a2a::method::Method;
    use serde_json::{Value, json};

    fn up(method: Method, json: &Value) -> Value {
        serde_json::from_str(&upgraded(method, &json.to_string(), Files::Text).unwrap()).unwrap()
    }

    #[test]
    fn every_form_of_a_task_is_read() {
        let parts = json!([{"text": "hi"}]);
        let expected = json!({"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_CANCELED"},
            "history": [{"messageId": "m", "role": "ROLE_USER", "parts": parts}]});
        let proto = json!({"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_CANCELLED"},
            "history": [{"messageId": "m", "role": "ROLE_USER", "content": parts}]});
        let kind = json!({"kind": "task", "id": "t", "contextId": "c", "status": {"state": "canceled"},
            "history": [{"kind": "message", "messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "hi"}]}]});
        assert_eq!(up(Method::GetTask, &proto), expected);
        assert_eq!(up(Method::GetTask, &kind), expected);
        for sent in [kind.clone(), json!({"task": kind}), json!({"task": proto})] {
            assert_eq!(up(Method::SendMessage, &sent), json!({"task": expected}), "{sent}");
        }
    }

    #[test]
    fn what_is_mixed_of_both_versions_is_read() {
        let parts = json!([{"text": "hi"}, {"raw": "aGk=", "mediaType": "text/plain"}]);
        let task = |state: &str, role: &str| {
            json!({"id": "t", "contextId": "c", "status": {"state": state, "timestamp": "2026-01-31T12:00:00.123456"},
                "history": [{"messageId": "m", "role": role, "parts": parts}],
                "artifacts": [{"artifactId": "a", "parts": parts}]})
        };
        let mut expected = task("TASK_STATE_SUBMITTED", "ROLE_USER");
        expected["status"]["timestamp"] = json!("2026-01-31T12:00:00.123456Z");
        for (state, role) in [("TASK_STATE_SUBMITTED", "ROLE_USER"), ("submitted", "user")] {
            assert_eq!(up(Method::GetTask, &task(state, role)), expected);
            assert_eq!(up(Method::SendMessage, &json!({"task": task(state, role)})), json!({"task": expected}));
        }
    }

    #[test]
    fn frames_of_1_0_in_words_of_0_3_are_read() {
        let status = json!({"statusUpdate": {"taskId": "t", "contextId": "c", "status": {"state": "completed"}}});
        let read = up(Method::SendStreamingMessage, &status);
        assert_eq!(read["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
        for part in
            [json!({"data": {"n": 1}}), json!({"data": [1]}), json!({"raw": "aGk="}), json!({"url": "http://u"})]
        {
            let frame = json!({"artifactUpdate": {"taskId": "t", "contextId": "c",
                "artifact": {"artifactId": "a", "parts": [part]}}});
            assert_eq!(up(Method::SendStreamingMessage, &frame)["artifactUpdate"]["artifact"]["parts"][0], part);
        }
        let proto = json!({"artifactUpdate": {"taskId": "t", "contextId": "c",
            "artifact": {"artifactId": "a", "parts": [{"data": {"data": {"n": 1}}}]}}});
        let read = up(Method::SendStreamingMessage, &proto);
        assert_eq!(read["artifactUpdate"]["artifact"]["parts"][0], json!({"data": {"n": 1}}));
    }

    #[test]
    fn what_is_not_one_thing_or_has_no_state_is_named() {
        let told = |json: Value| upgraded(Method::SendMessage, &json.to_string(), Files::Text).unwrap_err().to_string();
        assert!(told(json!([{"kind": "task"}])).contains("it is a JSON array"));
        assert!(told(json!({"kind": "task", "id": "t"})).contains("task.status.state is missing"));
        assert!(told(json!({"kind": "task", "id": "t", "status": {}})).contains("task.status.state is missing"));
        let array = read::<Sent>(Method::SendMessage, "[{}]".to_owned(), Writer::Agent).unwrap_err();
        assert!(array.to_string().contains("it is a JSON array"), "{array}");
        let unknown = up(Method::GetTask, &json!({"kind": "task", "id": "t", "status": {"state": "unknown"}}));
        assert_eq!(unknown["id"], "t");
    }

    #[test]
    fn what_is_no_json_is_told_with_how_it_begins() {
        for (text, told) in [
            ("<html>x</html>", "begins with '<html>x</html>'"),
            ("", "it is empty"),
            (r#"{"kind":"task","id":"#, "is not JSON (EOF"),
            ("\u{feff}{}", r"begins with '\u{feff}{}'"),
            (r#"{"kind":"task","metadata":NaN}"#, "is not JSON"),
        ] {
            for method in [Method::SendMessage, Method::GetTask, Method::ListTasks] {
                let problem = upgraded(method, text, Files::Text).unwrap_err().to_string();
                assert!(problem.contains(told), "{method:?}: {problem}");
            }
        }
        let placed = upgraded(Method::GetTask, r#"{"kind":"task","id":5}"#, Files::Text).unwrap_err().to_string();
        assert!(placed.contains("not A2A: task.id"), "{placed}");
    }

    #[test]
    fn push_configs_of_both_forms_are_read() {
        let expected = json!({"taskId": "t", "id": "c", "url": "http://e"});
        let proto = json!({"name": "tasks/t/pushNotificationConfigs/c", "pushNotificationConfig": {"url": "http://e"}});
        let kind = json!({"taskId": "t", "pushNotificationConfig": {"id": "c", "url": "http://e"}});
        assert_eq!(up(Method::GetPushConfig, &proto), expected);
        assert_eq!(up(Method::GetPushConfig, &kind), expected);
        assert_eq!(up(Method::ListPushConfigs, &json!({"configs": [proto]}))["configs"], json!([expected]));
        assert_eq!(up(Method::ListPushConfigs, &json!([kind]))["configs"], json!([expected]));
    }

    #[test]
    fn an_answer_of_the_other_version_is_read_all_the_same() {
        let old = r#"{"kind":"message","messageId":"m","role":"agent","parts":[{"kind":"text","text":"x"}]}"#;
        let (sent, json) = read::<Sent>(Method::SendMessage, old.to_owned(), Writer::Agent).unwrap();
        assert!(matches!(sent, Sent::Message(message) if message.parts.len() == 1));
        assert!(json.starts_with(r#"{"message":"#), "{json}");
        let none = read::<Sent>(Method::SendMessage, "{}".to_owned(), Writer::Agent).unwrap_err();
        assert!(none.to_string().contains("not A2A"), "{none}");
    }
}
