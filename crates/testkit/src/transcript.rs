//! Transcripts: what was asked and answered, with ids and times replaced, so that bindings can be compared.

use crate::client::{Client, Refusal};
use crate::sse::Event;
use serde_json::{Map, Value, json};

/// A conversation with the hub that is written down as it goes.
pub struct Talk {
    pub client: Client,
    lines: Vec<Value>,
    names: Names,
    sent: u32,
}

impl Talk {
    pub fn new(client: Client) -> Self {
        Self { client, lines: Vec::new(), names: Names::default(), sent: 0 }
    }

    pub fn call(&mut self, method: &str, params: Value) -> Result<Value, Refusal> {
        let answer = self.client.call(method, &params);
        self.note(method, &params, &answer);
        answer
    }

    /// Writes down an answer got by other means.
    pub fn note(&mut self, what: &str, params: &Value, answer: &Result<Value, Refusal>) {
        let told = match answer {
            Ok(value) => json!({"answer": value}),
            Err(refusal) => json!({"refusal": shared(refusal)}),
        };
        self.write(json!({"call": what, "with": params, "came": told}));
    }

    pub fn ok(&mut self, method: &str, params: Value) -> Value {
        self.call(method, params).unwrap_or_else(|refusal| panic!("{method}: {refusal:?}"))
    }

    pub fn refused(&mut self, method: &str, params: Value) -> Refusal {
        match self.call(method, params) {
            Err(refusal) => refusal,
            Ok(answer) => panic!("{method} should have been refused, but came to {answer}"),
        }
    }

    /// A message id nobody used before.
    pub fn fresh(&mut self) -> String {
        self.sent += 1;
        format!("message-{}", self.sent)
    }

    /// The parameters of a send of one text.
    pub fn message(&mut self, text: &str) -> Value {
        crate::client::message(&self.fresh(), text)
    }

    /// The parameters of a follow-up to a task.
    pub fn reply(&mut self, task: &Value, text: &str) -> Value {
        let mut params = self.message(text);
        params["message"]["taskId"] = task["id"].clone();
        params
    }

    /// SendMessage of one text that comes to a task.
    pub fn say(&mut self, text: &str) -> Value {
        let params = self.message(text);
        self.ok("SendMessage", params)["task"].clone()
    }

    /// The same without waiting. How far the task has come is chance, so only its ids are written down.
    pub fn start(&mut self, text: &str) -> Value {
        let mut params = self.message(text);
        params["configuration"] = json!({"returnImmediately": true});
        let sent = self.client.call("SendMessage", &params).unwrap_or_else(|refusal| panic!("{text}: {refusal:?}"));
        let task = sent["task"].clone();
        self.note("SendMessage", &params, &Ok(json!({"id": task["id"], "contextId": task["contextId"]})));
        task
    }

    /// Reads a stream to its end.
    pub fn stream(&mut self, method: &str, params: Value) -> Vec<Event> {
        let mut stream = self.client.stream(method, &params).unwrap_or_else(|refusal| panic!("{method}: {refusal:?}"));
        let events = stream.rest();
        assert!(!stream.cut, "the stream broke off");
        self.note_stream(method, &params, &events);
        events
    }

    pub fn note_stream(&mut self, method: &str, params: &Value, events: &[Event]) {
        let frames: Vec<Value> =
            events.iter().map(|event| json!({"number": event.number(), "frame": event.frame()})).collect();
        self.write(json!({"call": method, "with": params, "came": {"stream": frames}}));
    }

    pub fn refused_stream(&mut self, method: &str, params: Value) -> Refusal {
        match self.client.stream(method, &params) {
            Ok(_) => panic!("{method} should have been refused"),
            Err(refusal) => {
                self.note(method, &params, &Err(refusal.clone()));
                refusal
            }
        }
    }

    fn write(&mut self, mut line: Value) {
        drop_empty_lists(&mut line);
        let line = self.names.replace("", line);
        self.lines.push(line);
    }

    /// The lines, comparable with those of another binding.
    pub fn transcript(self) -> Vec<Value> {
        self.lines
    }
}

/// What two bindings must say alike of a refusal; their numbers are their own.
fn shared(refusal: &Refusal) -> Value {
    json!({
        "reason": refusal.reason,
        "domain": refusal.domain,
        "message": refusal.message,
        "metadata": refusal.metadata,
        "violations": refusal.violations,
    })
}

/// Protobuf does not tell an empty list from none, so transcripts do not either.
fn drop_empty_lists(value: &mut Value) {
    match value {
        Value::Array(all) => all.iter_mut().for_each(drop_empty_lists),
        Value::Object(members) => {
            let is_list = |name: &str| ["artifacts", "configs"].contains(&name);
            members.retain(|name, member| !is_list(name) || member.as_array().is_none_or(|all| !all.is_empty()));
            members.values_mut().for_each(drop_empty_lists);
        }
        _ => {}
    }
}

/// Ids and times as placeholders: the first id met is `<1>`, and so on.
#[derive(Debug, Default)]
pub struct Names {
    known: Vec<String>,
}

impl Names {
    pub fn replace(&mut self, key: &str, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(key, text)),
            Value::Array(all) => Value::Array(all.into_iter().map(|one| self.replace(key, one)).collect()),
            Value::Object(members) => {
                let replaced: Map<String, Value> =
                    members.into_iter().map(|(name, value)| (name.clone(), self.replace(&name, value))).collect();
                Value::Object(replaced)
            }
            other => other,
        }
    }

    fn text(&mut self, key: &str, text: String) -> String {
        match key {
            _ if text.is_empty() => text,
            "timestamp" | "statusTimestampAfter" => "<time>".into(),
            "nextPageToken" | "pageToken" => "<token>".into(),
            "id" | "taskId" | "contextId" | "messageId" | "artifactId" | "referenceTaskIds" => self.name(text),
            _ => {
                let mut text = text;
                for (index, id) in self.known.iter().enumerate() {
                    text = text.replace(id.as_str(), &format!("<{}>", index + 1));
                }
                text
            }
        }
    }

    fn name(&mut self, id: String) -> String {
        let index = self.known.iter().position(|known| *known == id).unwrap_or_else(|| {
            self.known.push(id);
            self.known.len() - 1
        });
        format!("<{}>", index + 1)
    }
}
