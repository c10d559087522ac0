//! What a request must hold before anything is decided: required fields, exactly one of a oneof, sane numbers.

use super::error::{Refusal, Violation};
use super::model::{Message, Part, Role};
use super::request::{ListTasksRequest, SendMessageRequest};
use crate::wire::Int32;

/// The longest id a caller may choose.
pub const MAX_ID: usize = 256;

#[derive(Default)]
struct Findings(Vec<Violation>);

/// More of them help nobody.
const MOST_FINDINGS: usize = 20;

impl Findings {
    fn add(&mut self, field: impl Into<String>, description: impl Into<String>) {
        if self.0.len() < MOST_FINDINGS {
            self.0.push(Violation { field: field.into(), description: description.into() });
        }
    }
    fn verdict(self) -> Result<(), Refusal> {
        if self.0.is_empty() { Ok(()) } else { Err(Refusal::violations(self.0)) }
    }
    fn id(&mut self, field: &str, value: &str) {
        if value.len() > MAX_ID {
            self.add(field, format!("must be at most {MAX_ID} bytes long, got {}", value.len()));
        } else if value.chars().any(|c| c.is_control() || is_invisible(c)) {
            self.add(field, "must not hold control or invisible characters");
        } else if !value.is_empty() && value.trim().is_empty() {
            self.add(field, "must not be blank");
        } else if matches!(value, "." | "..") {
            self.add(field, "must not be '.' or '..', which mean another place in a path");
        }
    }
}

/// Characters that take no room or turn the text around: what holds them looks like something else.
pub fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Checks a SendMessage request and returns its message.
pub fn send_message(request: &SendMessageRequest) -> Result<&Message, Refusal> {
    let Some(message) = &request.message else {
        return Err(Refusal::invalid("message", "is required"));
    };
    let mut findings = Findings::default();
    check_message(message, &mut findings);
    if let Some(configuration) = &request.configuration {
        check_history_length("configuration.historyLength", configuration.history_length, &mut findings);
    }
    findings.verdict()?;
    Ok(message)
}

fn check_message(message: &Message, findings: &mut Findings) {
    if message.message_id.is_empty() {
        findings.add("message.messageId", "is required: give each message a fresh id, such as a UUID");
    }
    findings.id("message.messageId", &message.message_id);
    findings.id("message.contextId", &message.context_id);
    findings.id("message.taskId", &message.task_id);
    match message.role {
        Role::User => {}
        Role::Unspecified => findings.add("message.role", "is required: a caller's message has ROLE_USER"),
        Role::Agent => findings.add("message.role", "must be ROLE_USER: only the agent itself says ROLE_AGENT"),
    }
    if message.parts.is_empty() {
        findings.add("message.parts", "must hold at least one part");
    }
    for (index, part) in message.parts.iter().enumerate() {
        if let Err(description) = check_part(part) {
            findings.add(format!("message.parts[{index}]"), description);
        }
    }
}

/// A part holds exactly one of its four contents.
pub fn check_part(part: &Part) -> Result<(), String> {
    let members = [
        ("text", part.text.is_some()),
        ("raw", part.raw.is_some()),
        ("url", part.url.is_some()),
        ("data", part.data.0.is_some()),
    ];
    let present: Vec<&str> = members.iter().filter(|(_, here)| *here).map(|(name, _)| *name).collect();
    match present.len() {
        1 => Ok(()),
        0 => Err("must hold one of text, raw, url and data".into()),
        _ => Err(format!("must hold only one of text, raw, url and data, got {}", present.join(" and "))),
    }
}

fn check_history_length(field: &str, length: Option<Int32>, findings: &mut Findings) {
    if let Some(Int32(n)) = length
        && n < 0
    {
        findings.add(field, format!("must not be negative, got {n}"));
    }
}

pub fn history_length(length: Option<Int32>) -> Result<(), Refusal> {
    let mut findings = Findings::default();
    check_history_length("historyLength", length, &mut findings);
    findings.verdict()
}

pub fn list_tasks(request: &ListTasksRequest) -> Result<(), Refusal> {
    let mut findings = Findings::default();
    if let Some(Int32(n)) = request.page_size
        && n < 1
    {
        findings.add("pageSize", format!("must be at least 1, got {n}"));
    }
    check_history_length("historyLength", request.history_length, &mut findings);
    findings.verdict()
}

/// A push config needs a URL; whether it may be called is decided elsewhere.
pub fn push_config(config: &super::request::PushConfig) -> Result<(), Refusal> {
    let mut findings = Findings::default();
    findings.id("id", &config.id);
    if config.url.is_empty() {
        findings.add("url", "is required: where to report to");
    }
    if let Some(authentication) = &config.authentication
        && authentication.scheme.is_empty()
    {
        findings.add("authentication.scheme", "is required, such as Bearer");
    }
    findings.verdict()
}

/// A task id is required by every operation on a task.
pub fn task_id(field: &str, id: &str) -> Result<(), Refusal> {
    if id.is_empty() { Err(Refusal::invalid(field, "is required")) } else { Ok(()) }
}
