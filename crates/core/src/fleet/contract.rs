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
use flotilla_protocol::fleet::{Dispatch, Found, HANDSHAKE, Handshake, Kind, hints, json, read, unfenced};
use flotilla_protocol::lineage;
use flotilla_protocol::time::Millis;
use std::collections::HashMap;
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
    /// How often each worker did.
    pub refusals: HashMap<Arc<str>, u32>,
    /// Who has it, or had it last, and in which run.
    pub given: Option<(u32, Arc<str>)>,
    /// Who had it before that.
    pub had: Option<Arc<str>>,
    /// What whoever has it may lack, for all that was known when it was chosen.
    pub unverified: Vec<String>,
    /// Whose reply was asked for again in this turn, and what was wrong with it: there is no third.
    pub asked_again: Option<(Arc<str>, Vec<String>)>,
    /// Somebody began it: what comes to nothing now was not refused.
    pub begun: bool,
    /// Whether the run was heard of, and whether it has made something.
    pub started: bool,
    pub made: bool,
    pub queued_at: Option<Millis>,
    /// How often its owner was told that nobody takes it.
    pub alerts: usize,
    /// What a later message, or the choice of a worker, has made of its deadline.
    pub deadline: Option<Millis>,
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
    let mut other = Carried::Nothing;
    for (place, told) in places(message, on) {
        match found(told, &place)? {
            dispatch @ Carried::Dispatch(_) => return Ok(dispatch),
            version @ Carried::OtherVersion(_) if other == Carried::Nothing => other = version,
            _ => {}
        }
    }
    Ok(other)
}

/// The same of a message that is to be taken: with two contracts, what one of them asks for would not hold.
pub fn only(message: &Message, on: bool) -> Result<Carried, Refusal> {
    let mut first: Option<(String, Box<Dispatch>)> = None;
    for (place, told) in places(message, on) {
        let Carried::Dispatch(dispatch) = found(told, &place)? else { continue };
        match &first {
            None => first = Some((place, dispatch)),
            // The same told twice is for those who read only one of the places.
            Some((_, known)) if *known == dispatch => {}
            Some((known, _)) => {
                let text = format!("holds a second TASK_DISPATCH, beside that of {known}; send one");
                return Err(Refusal::invalid(&place, text));
            }
        }
    }
    first.map_or_else(|| carried(message, on), |(_, dispatch)| Ok(Carried::Dispatch(dispatch)))
}

/// Where a dispatch may stand in a message, and what stands there: its metadata, its parts, and its first text.
fn places(message: &Message, on: bool) -> Vec<(String, Found)> {
    let mut places = Vec::new();
    let mut brief = None;
    if let Some(json) = message.metadata.as_ref().and_then(|metadata| lineage::find_member(metadata, HANDSHAKE)) {
        let told = match read(json.text()) {
            // Whoever writes it there means a contract: work must not be done without it.
            Found::Nothing if json.text().trim() != "null" => Found::Wrong(NO_DISPATCH.into()),
            told => told,
        };
        if let Found::Handshake(Handshake::Dispatch(dispatch)) = &told {
            brief = Some(dispatch.brief.clone());
        }
        places.push(("message.metadata".to_owned(), told));
    }
    for (index, part) in message.parts.iter().enumerate() {
        let is_dispatch = part.media_type == Kind::Dispatch.media_type();
        let Some(told) = json(part).filter(|_| is_dispatch || on) else { continue };
        let told = match read(&told) {
            Found::Nothing | Found::Handshake(Handshake::Announce(_) | Handshake::Result(_)) if is_dispatch => {
                Found::Wrong("must hold a TASK_DISPATCH, as its media type says".into())
            }
            told => told,
        };
        places.push((format!("message.parts[{index}]"), told));
    }
    let first = message.parts.iter().enumerate().find_map(|(index, part)| Some((index, part.text.as_deref()?)));
    // What is to be done is told as text too, whatever it looks like.
    let first = first.filter(|(_, text)| on && brief.is_none_or(|brief| brief.trim() != text.trim()));
    places.extend(first.map(|(index, text)| (format!("message.parts[{index}]"), in_text(text))));
    places
}

/// The dispatch a text is: hints at its top, or JSON, in a fence or not.
fn in_text(text: &str) -> Found {
    let text = unfenced(text);
    match hints::read(text) {
        Some(Ok(dispatch)) if !dispatch.protocol_version.is_spoken() => {
            Found::OtherVersion(Kind::Dispatch, dispatch.protocol_version.to_string())
        }
        Some(Ok(dispatch)) => Found::Handshake(Handshake::Dispatch(Box::new(dispatch))),
        Some(Err(problem)) => Found::Wrong(format!("TASK DISPATCH (inline): {problem}")),
        None => read(text),
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
    let is = |found: Found| matches!(found, Found::Handshake(Handshake::Dispatch(_)));
    part.media_type == Kind::Dispatch.media_type()
        || part.data.0.as_ref().is_some_and(|data| is(read(data.text())))
        || part.text.as_deref().is_some_and(|text| is(in_text(text)))
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
    /// Whether somebody else than who had it last may have it.
    pub fn is_for_others(&self) -> bool {
        self.given.is_none() || self.asked_again.is_some()
    }

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
                    Event::Descended { origin: None, deadline } => past.deadline = *deadline,
                    Event::RunQueued { .. } => (past.started, past.made) = (false, false),
                    Event::Produced { .. } => past.made = true,
                    Event::RunStarted { .. } => past.started = true,
                    // Who lost a run does not have it any more, and may have done some of it.
                    Event::RunLost { .. } => (past.given, past.begun) = (None, past.begun || past.started),
                    // The turn is over, and what was asked for in it is told.
                    Event::Status { state, .. } if state.is_interrupted() => {
                        (past.asked_again, past.begun) = (None, true);
                    }
                    _ => {}
                }
            }
        }
        past
    }

    /// How often a worker answered that it cannot do this work.
    pub fn refusals(&self, worker: &str) -> u32 {
        self.refusals.get(worker).copied().unwrap_or(0)
    }

    fn step(&mut self, run: u32, step: &Step, at: Millis) {
        match step {
            Step::Queued { .. } => self.queued_at = self.queued_at.or(Some(at)),
            Step::Assigned { worker, unverified, .. } => {
                self.had = self.given.replace((run, worker.as_str().into())).map(|(_, had)| had);
                self.unverified.clone_from(unverified);
            }
            Step::Resumed { worker } => self.given = Some((run, worker.as_str().into())),
            Step::Blocked { worker, epoch, revision, reason, detail, until, retry_at, retryable } => {
                self.given = None;
                *self.refusals.entry(worker.as_str().into()).or_default() += 1;
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
            Step::AskedAgain { worker, violations } => {
                (self.asked_again, self.begun) = (Some((worker.as_str().into(), violations.clone())), true);
            }
            Step::Alerted { .. } => self.alerts += 1,
            Step::Fallback { .. } => self.noted_version = true,
            Step::Rejected { .. } | Step::Judged { .. } | Step::Lost { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Carried, carried, is_dispatch, only, plain};
    use flotilla_protocol::a2a::model::Message;
    use flotilla_protocol::fleet::HANDSHAKE;
    use flotilla_protocol::wire::Base64;
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
            (json!([{"raw": Base64::encode(text.as_bytes()).text(), "mediaType": media}]), Value::Null, true, true),
            (json!([{"raw": Base64::encode(text.as_bytes()).text()}]), Value::Null, false, false),
            (json!([{"data": whole}]), Value::Null, true, false),
            (json!([{"text": text}]), Value::Null, true, false),
            (json!([{"text": inline}]), Value::Null, true, false),
            (json!([{"text": format!("```json\n{text}\n```\n")}]), Value::Null, true, false),
            (json!([{"text": format!("\u{feff}{text}")}]), Value::Null, true, false),
            (json!([{"text": format!("\u{feff}{inline}")}]), Value::Null, true, false),
            (json!([{"text": format!("```\n{inline}\n```")}]), Value::Null, true, false),
            (json!([{"text": format!("Do you know {text}?")}]), Value::Null, false, false),
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
        let media = "application/vnd.flotilla.task-dispatch+json";
        for other in [json!({"data": {}, "mediaType": media}), json!({"raw": "/////w==", "mediaType": media})] {
            assert!(wrong(json!([other]), Value::Null)[0].description.contains("must hold a TASK_DISPATCH"));
        }
    }

    #[test]
    fn a_message_is_under_one_contract() {
        let media = "application/vnd.flotilla.task-dispatch+json";
        let one = json!({"data": dispatch("2.0"), "mediaType": media});
        let mut stricter = dispatch("2.0");
        stricter["requirements"] = json!({"required_mcp": ["nope"]});
        let other = json!({"data": stricter, "mediaType": media});
        let inline = "TASK DISPATCH (inline)\nrequired_mcp: [nope]\nBrief: y";
        for (parts, metadata, place) in [
            (json!([one, other]), Value::Null, "message.parts[1]"),
            (json!([other]), json!({HANDSHAKE: dispatch("2.0")}), "message.parts[0]"),
            (json!([{"text": inline}, one]), Value::Null, "message.parts[0]"),
            (json!([{"text": inline}]), json!({HANDSHAKE: dispatch("2.0")}), "message.parts[0]"),
            (json!([one, {"data": {"type": "x"}, "mediaType": media}]), Value::Null, "message.parts[1]"),
        ] {
            let refused = only(&message(parts.clone(), metadata), true).unwrap_err();
            assert_eq!(refused.violations[0].field, place, "{parts}");
            assert!(refused.violations[0].description.contains("TASK_DISPATCH"), "{refused:?}");
        }
        let newer = json!({"data": dispatch("3.0"), "mediaType": media});
        for (parts, metadata) in [
            (json!([one, one]), Value::Null),
            (json!([one, {"text": "x"}]), json!({HANDSHAKE: dispatch("2.0")})),
            (json!([newer, one]), Value::Null),
            (json!([one]), json!({HANDSHAKE: dispatch("3.0")})),
        ] {
            let message = message(parts.clone(), metadata);
            let Ok(Carried::Dispatch(told)) = only(&message, true) else { panic!("{parts}") };
            assert_eq!(told.protocol_version.to_string(), "2.0", "of several versions the one that is spoken");
            assert_eq!(carried(&message, true), Ok(Carried::Dispatch(told)));
        }
        let inline = "TASK DISPATCH (inline)\nBrief: y";
        let brief = json!({"type": "TASK_DISPATCH", "protocol_version": "2.0", "brief": inline});
        let message = message(json!([{"text": inline}]), json!({HANDSHAKE: brief}));
        assert!(only(&message, true).is_ok(), "a brief is told as text, whatever it looks like");
    }

    #[test]
    fn plain_words_are_work_too() {
        let plainly = plain(&message(json!([{"text": "one"}, {"url": "http://a"}, {"text": "two"}]), Value::Null));
        assert_eq!(plainly.brief, "one\n\ntwo");
        let fenced = format!("```json\n{}\n```", dispatch("2.0"));
        let texts = json!([{"text": "TASK DISPATCH (inline)\nBrief: x"}, {"text": fenced}, {"text": "y"}]);
        let parts = message(texts, Value::Null).parts;
        assert_eq!(parts.iter().map(is_dispatch).collect::<Vec<_>>(), [true, true, false]);
    }
}
