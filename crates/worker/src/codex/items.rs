//! The lines of `codex exec --json`, as reports.

use flotilla_protocol::a2a::model::Artifact;
use flotilla_protocol::block::Block;
use flotilla_protocol::wire::Json;
use flotilla_protocol::work::{Contents, Report};
use serde_json::{Value, json};
use std::collections::HashSet;

/// Each figure by Codex's name and by ours.
const FIGURES: [(&str, &str); 4] = [
    ("input_tokens", "input_tokens"),
    ("output_tokens", "output_tokens"),
    ("cached_input_tokens", "cache_read_tokens"),
    ("cache_write_input_tokens", "cache_write_tokens"),
];

/// What a line says.
#[derive(Debug)]
pub enum Said {
    Session(String),
    Reports(Vec<Report>),
    /// The turn is over; `total` is what the session has used so far.
    Done {
        reports: Vec<Report>,
        total: Value,
    },
    Failed(String),
}

pub struct Turn {
    artifact_id: String,
    printed: bool,
    /// Uses of tools that were told.
    begun: HashSet<String>,
}

impl Turn {
    pub fn new(turn: u32) -> Self {
        Self { artifact_id: format!("output-{turn}"), printed: false, begun: HashSet::new() }
    }

    /// `before` is what the session had used before this turn.
    pub fn hear(&mut self, line: &str, before: &Value) -> Said {
        let Ok(event) = serde_json::from_str::<Value>(line) else {
            return Said::Reports(note(vec![Block::text(line)]));
        };
        match event["type"].as_str().unwrap_or_default() {
            "thread.started" => match event["thread_id"].as_str() {
                Some(session) => Said::Session(session.to_owned()),
                None => Said::Reports(Vec::new()),
            },
            "item.started" | "item.updated" => Said::Reports(self.item(&event["item"], false)),
            "item.completed" => Said::Reports(self.item(&event["item"], true)),
            "turn.completed" => {
                let reports = note(blocks(vec![used(&event["usage"], before)]));
                Said::Done { reports, total: event["usage"].clone() }
            }
            "turn.failed" => Said::Failed(plain(event["error"]["message"].as_str().unwrap_or("it does not say why"))),
            "error" => {
                let words = plain(event["message"].as_str().unwrap_or_default());
                Said::Reports(note(vec![Block::text(&words)]))
            }
            _ => Said::Reports(Vec::new()),
        }
    }

    fn item(&mut self, item: &Value, is_whole: bool) -> Vec<Report> {
        let id = item["id"].as_str().unwrap_or_default();
        let text = item["text"].as_str().or(item["message"].as_str()).unwrap_or_default();
        let (name, input, output) = match item["type"].as_str().unwrap_or_default() {
            "agent_message" if is_whole => return vec![self.printed(text)],
            "reasoning" if is_whole => return note(blocks(vec![json!({"type": "thinking", "thinking": text})])),
            "error" if is_whole => return note(vec![Block::text(text)]),
            "agent_message" | "reasoning" | "error" => return Vec::new(),
            "todo_list" => return note(blocks(vec![progress(&item["items"])])),
            "command_execution" => (
                "command",
                json!({"command": item["command"]}),
                json!({"output": item["aggregated_output"], "exit_code": item["exit_code"]}),
            ),
            "file_change" => ("file_change", json!({"changes": item["changes"]}), json!({"status": item["status"]})),
            "mcp_tool_call" => {
                let name = format!("mcp__{}__{}", word(&item["server"]), word(&item["tool"]));
                let output = if item["error"].is_null() { &item["result"] } else { &item["error"] };
                return self.tool(id, &name, item["arguments"].clone(), output.clone(), item, is_whole);
            }
            "web_search" => ("web_search", json!({"query": item["query"]}), Value::Null),
            _ if is_whole => return note(blocks(vec![json!({"type": "codex_item", "item": item})])),
            _ => return Vec::new(),
        };
        self.tool(id, name, input, output, item, is_whole)
    }

    fn tool(&mut self, id: &str, name: &str, input: Value, output: Value, item: &Value, is_whole: bool) -> Vec<Report> {
        let mut told = Vec::new();
        if self.begun.insert(id.to_owned()) {
            told.push(json!({"type": "tool_use", "id": id, "name": name, "input": input}));
        }
        if is_whole {
            let failed = item["status"] == "failed" || item["exit_code"].as_i64().is_some_and(|code| code != 0);
            let content = json!([{"type": "data", "data": output}]);
            told.push(json!({"type": "tool_result", "tool_use_id": id, "content": content, "is_error": failed}));
        }
        note(blocks(told))
    }

    /// Each message is whole; they stand one below the other.
    fn printed(&mut self, text: &str) -> Report {
        let append = std::mem::replace(&mut self.printed, true);
        let text = if append { format!("\n\n{text}") } else { text.to_owned() };
        self.artifact(Contents::text(text), append, false)
    }

    fn artifact(&self, contents: Contents, append: bool, last_chunk: bool) -> Report {
        let artifact_id = self.artifact_id.clone();
        let artifact = Box::new(Artifact { artifact_id, name: "output".into(), ..Artifact::default() });
        Report::Artifact { artifact, contents, append, last_chunk, metadata: None }
    }

    /// What is left to say when the turn is over.
    pub fn end(&mut self) -> Option<Report> {
        let printed = std::mem::take(&mut self.printed);
        printed.then(|| self.artifact(Contents::Parts(Vec::new()), true, true))
    }
}

/// The program tells what its whole session has used; the difference is this turn's.
fn used(total: &Value, before: &Value) -> Value {
    let mut used = json!({"type": "usage"});
    for (theirs, ours) in FIGURES {
        if let Some(figure) = total[theirs].as_u64() {
            used[ours] = figure.saturating_sub(before[theirs].as_u64().unwrap_or_default()).into();
        }
    }
    // What was read from the cache is in the input too.
    if let (Some(input), Some(cached)) = (used["input_tokens"].as_u64(), used["cache_read_tokens"].as_u64()) {
        used["input_tokens"] = input.saturating_sub(cached).into();
    }
    used
}

fn progress(items: &Value) -> Value {
    let all = items.as_array().map_or(&[][..], Vec::as_slice);
    let done = all.iter().filter(|item| item["completed"] == true).count();
    json!({"type": "progress", "progress": done, "total": all.len(), "plan": items})
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or("unknown")
}

/// The words of an error, which may be the JSON that the model's server answered.
fn plain(message: &str) -> String {
    let inner = serde_json::from_str::<Value>(message).ok();
    let inner = inner.and_then(|inner| inner["error"]["message"].as_str().map(str::to_owned));
    inner.unwrap_or_else(|| message.to_owned())
}

fn blocks(values: Vec<Value>) -> Vec<Block> {
    values.iter().filter_map(|value| Block::new(Json::new(value.to_string()).ok()?).ok()).collect()
}

fn note(blocks: Vec<Block>) -> Vec<Report> {
    if blocks.is_empty() { Vec::new() } else { vec![Report::Note { blocks }] }
}

#[cfg(test)]
mod tests {
    use super::{Said, Turn};
    use flotilla_protocol::work::{Contents, Report};
    use serde_json::{Value, json};

    fn told(said: Said) -> Vec<String> {
        let reports = match said {
            Said::Reports(reports) | Said::Done { reports, .. } => reports,
            other => return vec![format!("{other:?}")],
        };
        let shown = |report: &Report| match report {
            Report::Note { blocks } => blocks.iter().map(|block| block.json().text()).collect::<Vec<_>>().join(" "),
            Report::Artifact { contents: Contents::Parts(parts), .. } => format!("text {:?}", parts[0].text),
            other => format!("{other:?}"),
        };
        reports.iter().map(shown).collect()
    }

    fn hear(turn: &mut Turn, event: Value) -> Vec<String> {
        told(turn.hear(&event.to_string(), &Value::Null))
    }

    #[test]
    fn what_is_done_is_told_once_begun_and_once_ended() {
        let mut turn = Turn::new(1);
        let command = |status: &str, code: Value| json!({"id": "i1", "type": "command_execution", "command": "ls", "aggregated_output": "a", "exit_code": code, "status": status});
        let begun = hear(&mut turn, json!({"type": "item.started", "item": command("in_progress", Value::Null)}));
        assert_eq!(begun, [r#"{"id":"i1","input":{"command":"ls"},"name":"command","type":"tool_use"}"#]);
        let ended = hear(&mut turn, json!({"type": "item.completed", "item": command("completed", json!(2))}));
        assert!(
            ended.len() == 1 && ended[0].contains(r#""is_error":true"#) && !ended[0].contains(r#""tool_use""#),
            "{ended:?}"
        );
        let tool = json!({"id": "i2", "type": "mcp_tool_call", "server": "s", "tool": "t", "arguments": {}, "result": {"x": 1}});
        let whole = hear(&mut turn, json!({"type": "item.completed", "item": tool}));
        assert!(whole[0].contains("mcp__s__t") && whole[0].contains(r#""x":1"#), "{whole:?}");
    }

    #[test]
    fn messages_stand_one_below_the_other_and_thoughts_are_the_owners() {
        let mut turn = Turn::new(1);
        let message =
            |text: &str| json!({"type": "item.completed", "item": {"id": "m", "type": "agent_message", "text": text}});
        assert_eq!(hear(&mut turn, message("one")), [r#"text Some("one")"#]);
        assert_eq!(hear(&mut turn, message("two")), [r#"text Some("\n\ntwo")"#]);
        let thought = json!({"type": "item.completed", "item": {"type": "reasoning", "text": "hm"}});
        assert_eq!(hear(&mut turn, thought), [r#"{"thinking":"hm","type":"thinking"}"#]);
        assert!(turn.end().is_some() && turn.end().is_none());
        assert!(hear(&mut turn, json!({"type": "something.new"})).is_empty());
        assert!(told(turn.hear("no JSON", &Value::Null))[0].contains("no JSON"));
    }

    #[test]
    fn usage_is_what_this_turn_added() {
        let before = json!({"input_tokens": 22, "cached_input_tokens": 6, "output_tokens": 10});
        let line = json!({"type": "turn.completed", "usage": {"input_tokens": 33, "cached_input_tokens": 9, "output_tokens": 15}});
        let said = told(Turn::new(1).hear(&line.to_string(), &before));
        assert_eq!(said, [r#"{"cache_read_tokens":3,"input_tokens":8,"output_tokens":5,"type":"usage"}"#]);
    }

    #[test]
    fn a_failure_is_told_in_its_own_words() {
        let line = json!({"type": "turn.failed", "error": {"message": r#"{"error":{"message":"no such model"}}"#}});
        assert!(
            matches!(Turn::new(1).hear(&line.to_string(), &Value::Null), Said::Failed(words) if words == "no such model")
        );
    }
}
