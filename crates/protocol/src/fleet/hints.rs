//! A dispatch as plain text, for orchestrators and workers that know nothing else: hints at the top of a brief.

use super::dispatch::{Budget, Dispatch, OnBlocked, Priority, ReplySchema, Terms};
use super::version::{CURRENT, Version};
use crate::time::Millis;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::Write as _;

/// The line that opens the hints; nothing may stand before it.
const OPENING: &str = "TASK DISPATCH (inline)";
const BRIEF: &str = "brief";

/// Reads hints from a text's top. None if there are none; an error names the line that is wrong.
pub fn read(text: &str) -> Option<Result<Dispatch, String>> {
    let (first, rest) = text.trim_start_matches(super::is_blank).split_once('\n')?;
    if !first.trim_end().eq_ignore_ascii_case(OPENING) {
        return None;
    }
    Some(lines(rest).and_then(|dispatch| dispatch.check().map(|()| dispatch)))
}

fn lines(mut rest: &str) -> Result<Dispatch, String> {
    let mut dispatch = Dispatch { protocol_version: CURRENT, ..Dispatch::default() };
    loop {
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        let Some((key, value)) = line.split_once(':') else {
            if line.trim().is_empty() && !after.is_empty() {
                rest = after;
                continue;
            }
            let shown: String = line.chars().take(80).collect();
            return Err(format!("'{shown}' is no hint; write 'key: value', and 'Brief:' before what is to be done"));
        };
        let (key, value) = (key.trim().to_lowercase(), value.trim());
        if key == BRIEF {
            let brief = if after.is_empty() { value.to_owned() } else { format!("{value}\n{after}") };
            dispatch.brief = brief.trim().to_owned();
            return Ok(dispatch);
        }
        set(&mut dispatch, &key, value)?;
        rest = after;
    }
}

/// Hints of a newer version are kept as text.
fn set(dispatch: &mut Dispatch, key: &str, value: &str) -> Result<(), String> {
    let (task, requirements) = (&mut dispatch.task, &mut dispatch.requirements);
    match key {
        "to" => dispatch.to = Some(value.to_owned()),
        "task_id" => task.task_id = Some(value.to_owned()),
        "priority" => task.priority = word(key, value)?,
        "reply_schema" => task.reply_schema = word(key, value)?,
        "token_budget" => task.token_budget = Some(number(key, value)?),
        "json_schema" => task.json_schema = Some(json(key, value)?),
        "budget" => budget(task).join(json(key, value)?),
        "max_total_tokens" => budget(task).max_total_tokens = Some(number(key, value)?),
        "max_output_tokens" => budget(task).max_output_tokens = Some(number(key, value)?),
        "max_cost_usd" => {
            let cost = value.trim_start_matches('$').parse().map_err(|_| format!("{key}: '{value}' is no number"))?;
            budget(task).max_cost_usd = Some(cost);
        }
        "hard" => budget(task).hard = word::<bool>(key, value)?,
        "required_mcp" => requirements.required_mcp = list(value),
        "required_capabilities" => requirements.required_capabilities = list(value),
        "model_tier" => requirements.model_tier = Some(value.to_owned()),
        "context_window" => requirements.context_window = Some(number(key, value)?),
        "write" => requirements.write = word::<bool>(key, value)?,
        "skills" => requirements.skills = list(value),
        "labels" => requirements.labels = list(value),
        "deadline" => dispatch.deadline = Some(Millis::parse(value).map_err(|problem| format!("{key}: {problem}"))?),
        "on_blocked" => {
            let steps = list(value).iter().map(|step| word(key, step)).collect::<Result<Vec<OnBlocked>, _>>()?;
            dispatch.on_blocked = Some(steps);
        }
        "epoch" => dispatch.epoch = Some(number(key, value)?),
        "unverified" => dispatch.unverified = list(value),
        "protocol_version" => dispatch.protocol_version = version(value)?,
        "type" if value == super::Kind::Dispatch.name() => {}
        // Members of the JSON form: as a text they would take the place of what was said in hints.
        "type" | "task" | "requirements" => {
            return Err(format!("'{key}' is no hint; write each of its members in a line of its own, or send JSON"));
        }
        _ => {
            dispatch.more.insert(key.to_owned(), Value::String(value.to_owned()));
        }
    }
    Ok(())
}

/// Whoever wants another version than is spoken here has its text taken as text, which is noted.
fn version(value: &str) -> Result<Version, String> {
    value.parse().map_err(|problem| format!("protocol_version: {problem}"))
}

fn budget(task: &mut Terms) -> &mut Budget {
    task.budget.get_or_insert_default()
}

/// One of a closed set, as it is written in JSON.
fn word<T: DeserializeOwned>(key: &str, value: &str) -> Result<T, String> {
    let folded = value.to_lowercase();
    let json = if matches!(folded.as_str(), "true" | "false") { Value::Bool(folded == "true") } else { folded.into() };
    serde_json::from_value(json).map_err(|error| format!("{key}: {}", crate::decode::plain(&error.to_string())))
}

/// What takes more than a word is JSON, as it would stand in a TASK_DISPATCH.
fn json<T: DeserializeOwned>(key: &str, value: &str) -> Result<T, String> {
    serde_json::from_str(value).map_err(|error| {
        let problem = crate::decode::plain(&error.to_string());
        format!("{key}: must be JSON in this one line: {problem}")
    })
}

fn number(key: &str, value: &str) -> Result<u64, String> {
    let digits: String = value.chars().filter(|c| !matches!(c, '_' | ',')).collect();
    digits.parse().map_err(|_| format!("{key}: '{value}' is not a whole number"))
}

/// `[a, b]`, `a, b` or `a`.
fn list(value: &str) -> Vec<String> {
    let inner = value.trim_start_matches('[').trim_end_matches(']');
    let items = inner.split(',').map(|item| item.trim().trim_matches(['"', '\'']));
    items.filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

/// The dispatch as text. What hints have no words for (a JSON schema) is said in the brief's own words by whoever writes the
/// brief; fields of a newer version are hints under their own names.
pub fn write(dispatch: &Dispatch) -> String {
    let mut text = format!("{OPENING}\n");
    let mut line = |key: &str, value: &str| {
        // A line break would end the hint, and what follows would be another.
        let value: Vec<&str> = value.split_whitespace().collect();
        let _ = writeln!(text, "{key}: {}", value.join(" "));
    };
    let (task, requirements) = (&dispatch.task, &dispatch.requirements);
    if let Some(id) = &task.task_id {
        line("task_id", id);
    }
    if task.priority != Priority::default() {
        line("priority", &name(&task.priority));
    }
    if task.reply_schema != ReplySchema::default() {
        line("reply_schema", &name(&task.reply_schema));
    }
    if let Some(tokens) = dispatch.most_tokens() {
        line("token_budget", &tokens.to_string());
    }
    if let Some(budget) = &task.budget {
        if let Some(tokens) = budget.max_output_tokens {
            line("max_output_tokens", &tokens.to_string());
        }
        if let Some(cost) = budget.max_cost_usd {
            line("max_cost_usd", &cost.to_string());
        }
        if budget.hard {
            line("hard", "true");
        }
    }
    if let Some(tokens) = requirements.context_window {
        line("context_window", &tokens.to_string());
    }
    let lists = [
        ("required_mcp", &requirements.required_mcp),
        ("required_capabilities", &requirements.required_capabilities),
        ("skills", &requirements.skills),
        ("labels", &requirements.labels),
    ];
    for (key, items) in lists.iter().filter(|(_, items)| !items.is_empty()) {
        line(key, &format!("[{}]", items.join(", ")));
    }
    if let Some(tier) = &requirements.model_tier {
        line("model_tier", tier);
    }
    if requirements.write {
        line("write", "true");
    }
    if let Some(deadline) = dispatch.deadline {
        line("deadline", &deadline.to_string());
    }
    if !dispatch.unverified.is_empty() {
        line("unverified", &format!("[{}]", dispatch.unverified.join(", ")));
    }
    if let Some(steps) = &dispatch.on_blocked {
        let steps: Vec<String> = steps.iter().map(name).collect();
        line("on_blocked", &format!("[{}]", steps.join(", ")));
    }
    for (key, value) in [&dispatch.more, &task.more, &requirements.more].into_iter().flatten() {
        if is_new(key) {
            line(key, &value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        }
    }
    let _ = write!(text, "Brief: {}", dispatch.brief);
    text
}

/// Whether a field's name can stand before a colon, and is no hint of another meaning.
fn is_new(key: &str) -> bool {
    let mut nothing = Dispatch::default();
    let known = key == BRIEF || set(&mut nothing, key, "").is_err() || !nothing.more.contains_key(key);
    !known && !key.is_empty() && key.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-.".contains(c))
}

/// How a word of a closed set is written.
fn name<T: Serialize>(word: &T) -> String {
    match serde_json::to_value(word) {
        Ok(Value::String(name)) => name,
        _ => String::new(),
    }
}
