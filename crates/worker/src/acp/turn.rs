//! What an agent does in its turn, as reports: text for the caller, all the rest for the owner.

use flotilla_protocol::a2a::model::Artifact;
use flotilla_protocol::block::{Block, Kind};
use flotilla_protocol::usage::{Usage, dollars, nanos};
use flotilla_protocol::wire::Json;
use flotilla_protocol::work::{Assignment, Contents, Report};
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// Thoughts come in pieces; so many bytes of them are kept together.
const THOUGHT: usize = 4096;

#[derive(Default)]
pub struct Turn {
    artifact_id: String,
    /// Something was made, so the artifact is open.
    printed: bool,
    thought: String,
    /// What tools were last said to be used with, by the name of the use.
    uses: HashMap<String, Value>,
    cost: Cost,
}

/// What a session costs: the agent tells what all of it has cost, again and again. In billionths of a dollar.
#[derive(Default)]
struct Cost {
    /// It is this turn that is told of.
    begun: bool,
    /// The agent tells what it costs.
    is_told: bool,
    /// What of the session is told to the owner, or belongs to earlier turns; none if nothing is known of it.
    booked: Option<u64>,
}

impl Cost {
    /// What is new; none if that is nothing.
    fn told(&mut self, amount: u64) -> Option<Usage> {
        if !self.begun {
            self.booked = Some(amount);
            return None;
        }
        self.is_told = true;
        // A session that costs less than before is counted anew.
        let before = self.booked.filter(|booked| *booked <= amount).unwrap_or(0);
        self.booked = Some(amount);
        let new = amount - before;
        let figures = [None, None, None, None, Some(new)];
        (new > 0).then(|| Usage { figures, ..Usage::default() })
    }
}

impl Turn {
    pub fn new(assignment: &Assignment) -> Self {
        Self { artifact_id: format!("output-{}", assignment.turn), ..Self::default() }
    }

    /// What was told until now belongs to earlier turns, and so does what is remembered of them.
    pub fn begin(&mut self, remembered: &Value) {
        let booked = remembered["cost_usd"].as_f64().map(nanos);
        self.cost.booked = self.cost.booked.or(booked);
        self.cost.begun = true;
    }

    /// What is to be remembered with the session; none if there is nothing.
    pub fn memo(&self) -> Option<Value> {
        self.cost.booked.map(|booked| json!({"cost_usd": dollars(booked)}))
    }

    /// What an update says, in the order it is to be reported.
    pub fn update(&mut self, update: &Value) -> Vec<Report> {
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        if kind == "agent_thought_chunk" {
            self.thought.push_str(update["content"]["text"].as_str().unwrap_or_default());
            return if self.thought.len() > THOUGHT { self.thought_over() } else { Vec::new() };
        }
        let mut reports = Vec::new();
        let said = match kind {
            "agent_message_chunk" => self.made(&update["content"]),
            "tool_call" | "tool_call_update" => note(self.tool(update)),
            "plan" => note(vec![plan(&update["entries"])]),
            "usage_update" => {
                let amount = update["cost"]["amount"].as_f64().filter(|_| in_dollars(update));
                let new = amount.and_then(|amount| self.cost.told(nanos(amount))?.so_far());
                new.map(|block| Report::Note { blocks: vec![block] })
            }
            // What the agent could be asked for, and what the caller said: nothing that it did.
            "available_commands_update" | "config_option_update" | "session_info_update" | "user_message_chunk" => None,
            _ => note(vec![json!({"type": "acp_update", "update": update})]),
        };
        if said.is_some() {
            reports.extend(self.thought_over());
        }
        reports.extend(said);
        reports
    }

    fn made(&mut self, content: &Value) -> Option<Report> {
        let contents = match content["text"].as_str() {
            Some("") => return None,
            Some(text) if content["type"] == "text" => Contents::text(text),
            _ => Contents::Blocks(blocks(vec![content.clone()])),
        };
        let report = self.artifact(contents, self.printed, false);
        self.printed = true;
        Some(report)
    }

    fn artifact(&self, contents: Contents, append: bool, last_chunk: bool) -> Report {
        let artifact_id = self.artifact_id.clone();
        let artifact = Box::new(Artifact { artifact_id, name: "output".into(), ..Artifact::default() });
        Report::Artifact { artifact, contents, append, last_chunk, metadata: None }
    }

    /// A tool's use is told when it is begun and when more of it is known, its result when it has ended.
    fn tool(&mut self, update: &Value) -> Vec<Value> {
        let id = update["toolCallId"].as_str().unwrap_or_default().to_owned();
        let mut told = Vec::new();
        let input = update.get("rawInput").filter(|input| !input.is_null());
        let is_new = !self.uses.contains_key(&id);
        let is_more = input.is_some_and(|input| self.uses.get(&id) != Some(input));
        if is_new || is_more {
            let input = input.cloned().unwrap_or_else(|| Value::Object(Map::new()));
            let name = update["name"].as_str().or(update["title"].as_str()).unwrap_or("tool");
            let mut used = json!({"type": "tool_use", "id": id, "name": name, "input": input});
            for extra in ["title", "kind", "locations"] {
                if let Some(value) = update.get(extra).filter(|value| !value.is_null()) {
                    used[extra] = value.clone();
                }
            }
            self.uses.insert(id.clone(), input);
            told.push(used);
        }
        if let Some(status @ ("completed" | "failed")) = update["status"].as_str() {
            let content = update["content"].as_array().filter(|content| !content.is_empty());
            let content = match content {
                Some(content) => content.iter().map(result_block).collect(),
                None => output_blocks(&update["rawOutput"]),
            };
            let is_error = status == "failed";
            told.push(json!({"type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error}));
        }
        told
    }

    fn thought_over(&mut self) -> Vec<Report> {
        let thought = std::mem::take(&mut self.thought);
        if thought.is_empty() {
            Vec::new()
        } else {
            note(vec![json!({"type": "thinking", "thinking": thought})]).into_iter().collect()
        }
    }

    /// What is left to say when the turn is over.
    pub fn end(&mut self, usage: &Value) -> Vec<Report> {
        let mut reports = self.thought_over();
        let mut used = json!({"type": "usage"});
        for (told, name) in [
            ("inputTokens", "input_tokens"),
            ("outputTokens", "output_tokens"),
            ("cachedReadTokens", "cache_read_tokens"),
            ("cachedWriteTokens", "cache_write_tokens"),
        ] {
            if let Some(count) = usage[told].as_u64() {
                used[name] = count.into();
            }
        }
        // What it cost is told already, and no more than that.
        if std::mem::take(&mut self.cost.is_told) {
            used["cost_usd"] = 0.into();
        }
        if used.as_object().is_some_and(|used| used.len() > 1) {
            reports.extend(note(vec![used]));
        }
        reports.extend(self.close());
        reports
    }

    /// The same of a turn that is broken off: what it used may be more than was told.
    pub fn break_off(&mut self) -> Vec<Report> {
        let mut reports = self.thought_over();
        if std::mem::take(&mut self.cost.is_told) {
            reports.extend(note(vec![json!({"type": "usage"})]));
        }
        reports.extend(self.close());
        reports
    }

    fn close(&mut self) -> Option<Report> {
        std::mem::take(&mut self.printed).then(|| self.artifact(Contents::Parts(Vec::new()), true, true))
    }
}

fn in_dollars(update: &Value) -> bool {
    update["cost"]["currency"].as_str().is_none_or(|currency| currency.eq_ignore_ascii_case("usd"))
}

fn plan(entries: &Value) -> Value {
    let all = entries.as_array().map_or(&[][..], Vec::as_slice);
    let done = all.iter().filter(|entry| entry["status"] == "completed").count();
    let current = all.iter().find(|entry| entry["status"] == "in_progress");
    let mut progress = json!({"type": "progress", "progress": done, "total": all.len(), "plan": entries});
    if let Some(step) = current.and_then(|entry| entry["content"].as_str()) {
        progress["message"] = step.into();
    }
    progress
}

/// What a tool made: content as it is, and changes of files and terminals as blocks of their own kinds.
fn result_block(content: &Value) -> Value {
    if content["type"] == "content" { content["content"].clone() } else { content.clone() }
}

fn output_blocks(output: &Value) -> Vec<Value> {
    match output {
        Value::Null => Vec::new(),
        Value::String(text) => vec![json!({"type": "text", "text": text})],
        other => vec![json!({"type": "data", "data": other})],
    }
}

fn blocks(values: Vec<Value>) -> Vec<Block> {
    let block = |value: Value| {
        let json = |value: &Value| Json::new(value.to_string()).ok();
        // One that lacks what its kind needs is kept as it is, for the owner alone.
        let kept = || json!({"type": "acp_content", "content": value});
        json(&value).and_then(|text| Block::new(text).ok()).or_else(|| Block::new(json(&kept())?).ok())
    };
    values.into_iter().filter_map(block).collect()
}

fn note(values: Vec<Value>) -> Option<Report> {
    let blocks = blocks(values);
    debug_assert!(blocks.iter().all(|block| block.kind() != Kind::Text), "text is for the caller");
    (!blocks.is_empty()).then_some(Report::Note { blocks })
}

#[cfg(test)]
mod tests;
