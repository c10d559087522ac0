//! An agent's request for leave to use a tool, and the answer in its own words.

use flotilla_protocol::approval::{ApprovalKind, ApprovalRequest};
use flotilla_protocol::wire::Json;
use serde_json::{Value, json};

/// Who decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Permission {
    /// The agent's owner.
    #[default]
    Ask,
    /// Nobody: all is refused.
    Deny,
    /// Nobody: all is allowed, each time anew.
    Allow,
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The use it is asked for.
    pub id: String,
    pub tool: String,
    pub input: Value,
    title: String,
    options: Value,
}

impl Request {
    pub fn of(params: &Value) -> Self {
        let call = &params["toolCall"];
        let tool = call["name"].as_str().or(call["title"].as_str()).or(call["kind"].as_str()).unwrap_or("a tool");
        Self {
            id: call["toolCallId"].as_str().unwrap_or_default().to_owned(),
            tool: tool.to_owned(),
            input: call["rawInput"].clone(),
            title: call["title"].as_str().unwrap_or_default().to_owned(),
            options: params["options"].clone(),
        }
    }

    /// The question to the agent's owner. An agent may ask about one use of a tool more than once, so each question has
    /// a number of its own.
    pub fn question(&self, number: u64) -> ApprovalRequest {
        ApprovalRequest {
            id: format!("{}#{number}", self.id),
            kind: ApprovalKind::ToolPermission,
            tool: self.tool.clone(),
            input: (!self.input.is_null()).then(|| Json::new(self.input.to_string()).ok()).flatten(),
            text: self.title.clone(),
            expires_in: None,
        }
    }

    /// Yes or no, by one of the options the agent gave; only this once if it can be. Without a fitting option the agent
    /// is told that its question was taken back, which is a no in every agent.
    pub fn answer(&self, allowed: bool) -> Value {
        let kinds = if allowed { ["allow_once", "allow_always"] } else { ["reject_once", "reject_always"] };
        let options = self.options.as_array().map_or(&[][..], Vec::as_slice);
        let of_kind = |kind: &&str| options.iter().find(|option| option["kind"] == **kind);
        match kinds.iter().find_map(of_kind) {
            Some(option) => json!({"outcome": {"outcome": "selected", "optionId": option["optionId"]}}),
            None => taken_back(),
        }
    }

    /// For the owner's log.
    pub fn note(&self, allowed: bool, why: &str) -> Value {
        let decision = if allowed { "allowed" } else { "denied" };
        json!({
            "type": "permission", "tool_use_id": self.id, "tool": self.tool, "input": self.input,
            "decision": decision, "reason": why,
        })
    }
}

/// The answer to a question whose turn is over.
pub fn taken_back() -> Value {
    json!({"outcome": {"outcome": "cancelled"}})
}

#[cfg(test)]
mod tests {
    use super::Request;
    use serde_json::json;

    fn request(kinds: &[&str]) -> Request {
        let options: Vec<_> =
            kinds.iter().map(|kind| json!({"optionId": format!("id-{kind}"), "kind": kind})).collect();
        Request::of(&json!({"toolCall": {"toolCallId": "t", "title": "ls", "rawInput": {"c": 1}}, "options": options}))
    }

    #[test]
    fn yes_is_for_this_once_where_it_can_be() {
        let asked = request(&["allow_always", "allow_once", "reject_always", "reject_once"]);
        assert_eq!(asked.answer(true), json!({"outcome": {"outcome": "selected", "optionId": "id-allow_once"}}));
        assert_eq!(asked.answer(false), json!({"outcome": {"outcome": "selected", "optionId": "id-reject_once"}}));
        let question = asked.question(2);
        assert_eq!((question.id.as_str(), question.tool.as_str(), question.text.as_str()), ("t#2", "ls", "ls"));
        assert_eq!(question.input.map(|input| input.text().to_owned()).as_deref(), Some(r#"{"c":1}"#));
    }

    #[test]
    fn without_a_fitting_option_the_question_is_taken_back() {
        let cancelled = json!({"outcome": {"outcome": "cancelled"}});
        assert_eq!(request(&["allow_once"]).answer(false), cancelled);
        assert_eq!(request(&["reject_once", "later"]).answer(true), cancelled);
    }
}
