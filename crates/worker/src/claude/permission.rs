//! What Claude Code asks while it works: whether it may use a tool, and questions for whoever called.

use super::frame::{Asked, Request};
use crate::agent::{Outbox, Stopped};
use flotilla_protocol::a2a::model::Part;
use flotilla_protocol::approval::ApprovalRequest;
use flotilla_protocol::wire::{AnyValue, Json};
use flotilla_protocol::work::Contents;
use serde::{Deserialize, Serialize};

/// The tool by which the model asks its user.
const QUESTION: &str = "AskUserQuestion";

/// What is to become of a request.
#[derive(Debug)]
pub enum Matter {
    /// May it use a tool?
    Permission(Wish),
    /// Something only the caller can answer.
    Question(Contents),
    /// Nothing that is known here.
    Other,
}

/// A use of a tool that wants leave.
#[derive(Debug, Clone, PartialEq)]
pub struct Wish {
    pub tool: String,
    pub input: Json,
    pub description: String,
    pub tool_use: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// With what the tool is to be used.
    Allow(Json),
    /// With what the model is told.
    Deny(String),
}

pub fn matter(asked: &Asked) -> Matter {
    if asked.subtype != "can_use_tool" {
        return Matter::Other;
    }
    let input = asked.input.clone().or_else(|| Json::new("{}".into()).ok());
    let Some(input) = input else { return Matter::Other };
    if asked.tool_name == QUESTION {
        return Matter::Question(question(input));
    }
    Matter::Permission(Wish {
        tool: asked.tool_name.clone(),
        input,
        description: asked.description.clone().unwrap_or_default(),
        tool_use: asked.tool_use_id.clone(),
    })
}

/// Asks the owner. A no says what the owner said about it, and a run that is over gets a no too.
pub async fn decide(id: &str, wish: Wish, outbox: &Outbox) -> Verdict {
    let Wish { tool, input, description, tool_use } = wish;
    let request = ApprovalRequest {
        id: tool_use.unwrap_or_else(|| id.to_owned()),
        input: Some(input.clone()),
        text: description,
        tool: tool.clone(),
        ..ApprovalRequest::default()
    };
    match outbox.ask(request).await {
        Ok(decision) if decision.is_allowed() => Verdict::Allow(decision.input.unwrap_or(input)),
        Ok(decision) if !decision.note.is_empty() => Verdict::Deny(decision.note),
        Ok(decision) => Verdict::Deny(format!("The use of {tool} was not allowed ({}).", decision.state.name())),
        Err(Stopped) => Verdict::Deny("The run is over.".into()),
    }
}

#[derive(Deserialize)]
struct Questions {
    questions: Vec<Question>,
}

#[derive(Deserialize)]
struct Question {
    question: String,
    #[serde(default)]
    options: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    label: String,
    #[serde(default)]
    description: String,
}

/// The question in words, and as data for programs that show choices.
fn question(input: Json) -> Contents {
    let words = match serde_json::from_str::<Questions>(input.text()) {
        Ok(asked) => asked.questions.iter().map(in_words).collect::<Vec<_>>().join("\n\n"),
        Err(_) => "The agent has a question; see the data.".to_owned(),
    };
    Contents::Parts(vec![Part::text(words), Part { data: AnyValue(Some(input)), ..Part::default() }])
}

fn in_words(asked: &Question) -> String {
    let choices = asked.options.iter().map(|choice| match choice.description.as_str() {
        "" => format!("\n- {}", choice.label),
        more => format!("\n- {}: {more}", choice.label),
    });
    format!("{}{}", asked.question, choices.collect::<String>())
}

#[derive(Serialize)]
struct Answer<'a> {
    r#type: &'static str,
    response: Response<'a>,
}

#[derive(Serialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
enum Response<'a> {
    Success { request_id: &'a str, response: Decision<'a> },
    Error { request_id: &'a str, error: &'a str },
}

#[derive(Serialize)]
#[serde(tag = "behavior", rename_all = "snake_case")]
enum Decision<'a> {
    #[serde(rename_all = "camelCase")]
    Allow {
        updated_input: &'a Json,
    },
    Deny {
        message: &'a str,
        interrupt: bool,
    },
}

fn line(response: Response<'_>) -> String {
    let answer = Answer { r#type: "control_response", response };
    // Nothing in it can fail to be written as JSON.
    serde_json::to_string(&answer).map(|json| format!("{json}\n")).unwrap_or_default()
}

pub fn verdict(request_id: &str, verdict: &Verdict) -> String {
    let response = match verdict {
        Verdict::Allow(input) => Decision::Allow { updated_input: input },
        Verdict::Deny(message) => Decision::Deny { message, interrupt: false },
    };
    line(Response::Success { request_id, response })
}

/// The caller is asked: the turn ends here, and the answer begins the next.
pub fn passed_on(request_id: &str) -> String {
    let message = "The question was passed on. The answer comes with the next message.";
    line(Response::Success { request_id, response: Decision::Deny { message, interrupt: true } })
}

pub fn not_known(request: &Request) -> String {
    let error = format!("requests of the kind '{}' are not answered here", request.request.subtype);
    line(Response::Error { request_id: &request.request_id, error: &error })
}

#[cfg(test)]
mod tests {
    use super::{Matter, Verdict, matter, passed_on, verdict};
    use crate::claude::frame::{Frame, Request};

    fn request(body: &str) -> Request {
        let line = format!(r#"{{"type":"control_request","request_id":"r","request":{body}}}"#);
        let Frame::Request(request) = Frame::read(&line) else { panic!("{line}") };
        request
    }

    #[test]
    fn a_permission_is_answered_with_the_same_input() {
        let asked = request(r#"{"subtype":"can_use_tool","tool_name":"Bash","input":{"n": 1.0},"tool_use_id":"t"}"#);
        let Matter::Permission(wish) = matter(&asked.request) else { panic!() };
        assert_eq!((wish.tool.as_str(), wish.tool_use.as_deref()), ("Bash", Some("t")));
        let allowed = verdict("r", &Verdict::Allow(wish.input));
        let expected = r#"{"type":"control_response","response":{"subtype":"success","request_id":"r","response":{"behavior":"allow","updatedInput":{"n": 1.0}}}}"#;
        assert_eq!(allowed.trim_end(), expected);
        assert!(verdict("r", &Verdict::Deny("no".into())).contains(r#""message":"no","interrupt":false"#));
    }

    #[test]
    fn a_question_is_for_the_caller_and_ends_the_turn() {
        let body = r#"{"subtype":"can_use_tool","tool_name":"AskUserQuestion","input":{"questions":[{"question":"Which?","options":[{"label":"Red","description":"warm"},{"label":"Blue"}]}]}}"#;
        let Matter::Question(contents) = matter(&request(body).request) else { panic!() };
        assert!(format!("{contents:?}").contains(r"Which?\n- Red: warm\n- Blue"), "{contents:?}");
        assert!(passed_on("r").contains(r#""interrupt":true"#));
        assert!(matches!(matter(&request(r#"{"subtype":"hook_callback"}"#).request), Matter::Other));
    }
}
