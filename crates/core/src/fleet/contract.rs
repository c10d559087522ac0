//! The contract of a message: the dispatch it carries in any of its forms, and what was done about it so far.

use super::FLEET;
use super::own::Titles;
use super::spent::Spent;
use crate::dispatch::{Shunned, Target};
use crate::registry::Agent;
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::model::{Message, Part};
use flotilla_protocol::event::{Change, Event};
use flotilla_protocol::fleet::route::Step;
use flotilla_protocol::fleet::{Dispatch, Found, HANDSHAKE, Handshake, Kind, hints, read};
use flotilla_protocol::lineage;
use flotilla_protocol::time::Millis;
use std::sync::Arc;

/// What a message says of how its work is to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Carried {
    Nothing,
    Dispatch(Box<Dispatch>),
    /// One of a version that is not spoken here.
    OtherVersion(String),
}

/// Work under a contract, with its past.
#[derive(Debug, Clone)]
pub struct Contract {
    pub dispatch: Arc<Dispatch>,
    pub target: Target,
    pub past: Past,
}

/// What the log says was done about it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Past {
    /// Who answered that it cannot.
    pub shunned: Vec<Shunned>,
    /// Who has it, or had it last, and in which run.
    pub given: Option<(u32, Arc<str>)>,
    /// What was wrong with the last reply.
    pub violations: Option<Vec<String>>,
    pub queued_at: Option<Millis>,
    pub alerted: bool,
    /// The version the dispatch is of, if it is not ours.
    pub noted_version: bool,
    /// What its runs used.
    pub spent: Spent,
    pub titles: Titles,
    /// The only agents that may do it, if its caller's key is limited to some.
    pub agents: Option<Arc<[String]>>,
}

/// What is wrong with something else under the handshake's name.
const NO_DISPATCH: &str = "urn:flotilla:ext:fleet-handshake:2.0: must be a TASK_DISPATCH, an object with \"type\": \
                           \"TASK_DISPATCH\"; docs/fleet.md shows one";

/// Reads the dispatch a message carries. Texts are looked into only where `on`: for others they are content.
pub fn carried(message: &Message, on: bool) -> Result<Carried, Refusal> {
    if let Some(json) = message.metadata.as_ref().and_then(|metadata| lineage::find_member(metadata, HANDSHAKE)) {
        return match read(json.text()) {
            // Whoever writes it there means a contract: work must not be done without it.
            Found::Nothing if json.text().trim() != "null" => Err(Refusal::invalid("message.metadata", NO_DISPATCH)),
            told => found(told, "message.metadata"),
        };
    }
    for (index, part) in message.parts.iter().enumerate() {
        let place = || format!("message.parts[{index}]");
        let is_dispatch = part.media_type == Kind::Dispatch.media_type();
        if let Some(data) = part.data.0.as_ref().filter(|_| is_dispatch || on) {
            match found(read(data.text()), &place())? {
                Carried::Nothing if is_dispatch => {
                    return Err(Refusal::invalid(&place(), "must hold a TASK_DISPATCH, as its media type says"));
                }
                Carried::Nothing => {}
                carried => return Ok(carried),
            }
        }
    }
    let first = message.parts.iter().enumerate().find_map(|(index, part)| Some((index, part.text.as_deref()?)));
    let Some((index, text)) = first.filter(|_| on) else { return Ok(Carried::Nothing) };
    let place = format!("message.parts[{index}]");
    match hints::read(text) {
        Some(Ok(dispatch)) => Ok(Carried::Dispatch(Box::new(dispatch))),
        Some(Err(problem)) => Err(Refusal::invalid(&place, format!("TASK DISPATCH (inline): {problem}"))),
        None => found(read(text), &place),
    }
}

fn found(found: Found, place: &str) -> Result<Carried, Refusal> {
    match found {
        Found::Handshake(Handshake::Dispatch(dispatch)) => Ok(Carried::Dispatch(dispatch)),
        Found::OtherVersion(_, version) => Ok(Carried::OtherVersion(version)),
        Found::Wrong(problem) => Err(Refusal::invalid(place, problem)),
        Found::Nothing | Found::Handshake(_) => Ok(Carried::Nothing),
    }
}

/// A message to the fleet that carries nothing is work all the same.
pub fn plain(message: &Message) -> Dispatch {
    let texts: Vec<&str> = message.parts.iter().filter_map(|part| part.text.as_deref()).collect();
    let brief = texts.join("\n\n");
    let brief = if brief.trim().is_empty() { "Do what the parts of this message say.".to_owned() } else { brief };
    Dispatch { brief, ..Dispatch::default() }
}

/// Whether a part is nothing but the dispatch.
pub fn is_dispatch(part: &Part) -> bool {
    let is = |json: &str| matches!(read(json), Found::Handshake(Handshake::Dispatch(_)));
    part.media_type == Kind::Dispatch.media_type()
        || part.data.0.as_ref().is_some_and(|data| is(data.text()))
        || part.text.as_deref().is_some_and(|text| is(text) || matches!(hints::read(text), Some(Ok(_))))
}

/// Whom a dispatch names. The fleet is nobody that works.
pub fn addressee(dispatch: &Dispatch) -> Result<Target, Refusal> {
    match dispatch.to.as_deref().map_or(Target::Any, Target::of) {
        Target::Worker(name) if name == FLEET => {
            let text = "'fleet' stands for all workers and is none itself; leave 'to' out or write 'any' to let the hub \
                        choose, or name a worker";
            Err(Refusal::invalid("to", text))
        }
        target => Ok(target),
    }
}

/// Whom work sent to an agent is for: the agent itself, or, of the fleet, whom the dispatch names.
pub fn target(agent: &Agent, dispatch: &Dispatch) -> Target {
    if agent.name == FLEET {
        return dispatch.to.as_deref().map_or(Target::Any, Target::of);
    }
    Target::Worker(agent.name.clone())
}

impl Past {
    pub fn of(changes: &[Arc<Change>]) -> Self {
        let mut past = Self::default();
        for change in changes {
            for event in &change.events {
                past.spent.event(event);
                past.titles.event(event);
                match event {
                    Event::Asked { agents: Some(agents), .. } if past.agents.is_none() => {
                        past.agents = Some(Arc::clone(agents));
                    }
                    Event::Routed { run, step } => past.step(*run, step, change.at),
                    // Who lost a run does not have it any more.
                    Event::RunLost { .. } => past.given = None,
                    _ => {}
                }
            }
        }
        past
    }

    fn step(&mut self, run: u32, step: &Step, at: Millis) {
        match step {
            Step::Queued { .. } => self.queued_at = self.queued_at.or(Some(at)),
            Step::Assigned { worker, .. } | Step::Resumed { worker } => {
                (self.given, self.violations) = (Some((run, worker.as_str().into())), None);
            }
            Step::Blocked { worker, epoch, revision, reason, detail, until, retry_at, retryable } => {
                self.given = None;
                self.shunned.retain(|shunned| *shunned.worker != **worker);
                self.shunned.push(Shunned {
                    worker: worker.as_str().into(),
                    epoch: *epoch,
                    revision: *revision,
                    until: *until,
                    reason: reason.clone(),
                    detail: detail.clone(),
                    retry_at: *retry_at,
                    retryable: *retryable,
                });
            }
            Step::AskedAgain { violations, .. } => self.violations = Some(violations.clone()),
            Step::Alerted { .. } => self.alerted = true,
            Step::Fallback { .. } => self.noted_version = true,
            Step::Rejected { .. } | Step::Judged { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Carried, carried, is_dispatch, plain};
    use flotilla_protocol::a2a::model::Message;
    use flotilla_protocol::fleet::HANDSHAKE;
    use serde_json::{Value, json};

    fn message(parts: Value, metadata: Value) -> Message {
        let json = json!({"messageId": "m", "role": "ROLE_USER", "parts": parts, "metadata": metadata});
        serde_json::from_value(json).unwrap()
    }

    fn dispatch(version: &str) -> Value {
        json!({"type": "TASK_DISPATCH", "protocol_version": version, "brief": "x"})
    }

    #[test]
    fn every_form_is_read_and_texts_only_where_they_may() {
        let whole = dispatch("2.0");
        let media = "application/vnd.flotilla.task-dispatch+json";
        let text = whole.to_string();
        let inline = "TASK DISPATCH (inline)\nBrief: x";
        for (parts, metadata, on, off) in [
            (json!([{"text": "x"}]), json!({HANDSHAKE: whole}), true, true),
            (json!([{"text": "hello"}, {"data": whole, "mediaType": media}]), Value::Null, true, true),
            (json!([{"data": whole}]), Value::Null, true, false),
            (json!([{"text": text}]), Value::Null, true, false),
            (json!([{"text": inline}]), Value::Null, true, false),
            (json!([{"text": "hello"}, {"text": inline}]), Value::Null, false, false),
            (json!([{"text": "hello"}]), json!({"other": 1}), false, false),
        ] {
            let message = message(parts.clone(), metadata);
            let is = |on| matches!(carried(&message, on), Ok(Carried::Dispatch(_)));
            assert_eq!((is(true), is(false)), (on, off), "{parts}");
        }
    }

    #[test]
    fn slips_and_other_versions_are_told_apart() {
        let newer = message(json!([{"text": "x"}]), json!({HANDSHAKE: dispatch("3.0")}));
        assert_eq!(carried(&newer, false), Ok(Carried::OtherVersion("3.0".into())));
        let wrong = |parts: Value, metadata: Value| carried(&message(parts, metadata), true).unwrap_err().violations;
        let slip = json!({"type": "TASK_DISPATCH", "protocol_version": "2.0", "brief": ""});
        let told = wrong(json!([{"text": "x"}]), json!({HANDSHAKE: slip}));
        assert_eq!(told[0].field, "message.metadata");
        for none in [json!("{}"), json!([dispatch("2.0")]), json!({"brief": "x"}), json!({"type": "task_dispatch"})] {
            let told = wrong(json!([{"text": "x"}]), json!({HANDSHAKE: none}));
            assert!(told[0].description.contains("must be a TASK_DISPATCH"), "{told:?}");
        }
        let result = json!({"type": "TASK_RESULT", "protocol_version": "2.0", "status": "done"});
        for other in [Value::Null, result] {
            let message = message(json!([{"text": "x"}]), json!({HANDSHAKE: other}));
            assert_eq!(
                carried(&message, true),
                Ok(Carried::Nothing),
                "what is of the handshake and no contract is content"
            );
        }
        let told = wrong(json!([{"text": "TASK DISPATCH (inline)\npriority: asap\nBrief: x"}]), Value::Null);
        assert!(told[0].description.contains("priority"), "{told:?}");
        let other = json!([{"data": {}, "mediaType": "application/vnd.flotilla.task-dispatch+json"}]);
        assert!(wrong(other, Value::Null)[0].description.contains("must hold a TASK_DISPATCH"));
    }

    #[test]
    fn plain_words_are_work_too() {
        let plainly = plain(&message(json!([{"text": "one"}, {"url": "http://a"}, {"text": "two"}]), Value::Null));
        assert_eq!(plainly.brief, "one\n\ntwo");
        let parts = message(json!([{"text": "TASK DISPATCH (inline)\nBrief: x"}, {"text": "y"}]), Value::Null).parts;
        assert_eq!(parts.iter().map(is_dispatch).collect::<Vec<_>>(), [true, false]);
    }
}
