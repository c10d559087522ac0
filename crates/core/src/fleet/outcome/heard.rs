//! What a worker said in a run, put together from the pieces it came in.

use flotilla_protocol::a2a::model::Part;
use flotilla_protocol::fleet::{Announce, Found, Handshake, Kind, TaskResult, ending, ending_and_words, read, version};
use flotilla_protocol::wire::Json;
use serde_json::Value;

/// So much of all words is looked at for a result that was cut to pieces some other way.
const WORDS: usize = 64 * 1024;

/// What a part turned out to hold.
pub(super) enum Held {
    /// A result, and the words that stand around it.
    Result(Box<TaskResult>, String),
    Announce(Box<Announce>),
    /// A result that cannot be read. It is content too, so that its owner sees what it was.
    Wrong(String),
    Content,
}

pub(super) fn held(part: &Part) -> Held {
    let Some(json) = part.data.0.as_ref().map(Json::text) else {
        return part.text.as_deref().map_or(Held::Content, |text| of_result(ending_and_words(text)));
    };
    match read(json) {
        Found::Handshake(Handshake::Announce(told)) if part.media_type == Kind::Announce.media_type() => {
            Held::Announce(told)
        }
        Found::Nothing if part.media_type == Kind::Result.media_type() || lists_result(json) => {
            Held::Wrong("TASK_RESULT: must be one JSON object whose type is \"TASK_RESULT\"".into())
        }
        found => of_result((found, String::new())),
    }
}

fn of_result((found, words): (Found, String)) -> Held {
    match found {
        Found::Handshake(Handshake::Result(result)) => Held::Result(result, words),
        Found::OtherVersion(Kind::Result, told) => Held::Wrong(format!(
            "TASK_RESULT: protocol_version: {told} is not spoken here; write \"{}\"",
            version::CURRENT
        )),
        Found::Wrong(problem) if problem.starts_with(Kind::Result.name()) => Held::Wrong(problem),
        _ => Held::Content,
    }
}

fn lists_result(json: &str) -> bool {
    let listed = json.trim_start().starts_with('[').then(|| serde_json::from_str::<Vec<Value>>(json).ok()).flatten();
    listed.is_some_and(|values| values.iter().any(is_result))
}

fn is_result(value: &Value) -> bool {
    value["type"] == Kind::Result.name()
}

/// All that was said, but for results that came whole.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Heard {
    /// What was said last is last.
    spoken: Vec<Spoken>,
    /// All words as they came, or the end of them, since a result came whole.
    words: String,
}

/// An artifact, or a message.
#[derive(Debug, Clone, Default, PartialEq)]
struct Spoken {
    artifact: Option<String>,
    text: String,
    /// The last JSON that is a part of its own. A piece of a text is none.
    data: Option<Value>,
    alone: Option<Value>,
    /// A result came whole after it.
    settled: bool,
}

impl Heard {
    /// An artifact goes on, or begins, or begins anew.
    pub(super) fn artifact(&mut self, id: &str, append: bool, parts: &[Part]) {
        let at = self.spoken.iter().position(|spoken| spoken.artifact.as_deref() == Some(id));
        let had = at.map(|at| self.spoken.remove(at)).filter(|_| append);
        let spoken = had.unwrap_or_else(|| Spoken { artifact: Some(id.to_owned()), ..Spoken::default() });
        self.add(spoken, append, parts);
    }

    pub(super) fn message(&mut self, parts: &[Part]) {
        // Of messages before it only a reply is of use.
        self.spoken.retain(|spoken| spoken.artifact.is_some() || spoken.json().is_some());
        self.add(Spoken::default(), false, parts);
    }

    fn add(&mut self, mut spoken: Spoken, append: bool, parts: &[Part]) {
        spoken.settled = false;
        for part in parts {
            if let Some(data) = &part.data.0 {
                spoken.data = serde_json::from_str(data.text()).ok().or(spoken.data);
            } else if let Some(text) = &part.text {
                spoken.alone = if append { None } else { json(text).or(spoken.alone) };
                spoken.text.push_str(text);
                self.words.push_str(text);
            }
        }
        let over = self.words.len().saturating_sub(WORDS);
        let over = (over..self.words.len()).find(|at| self.words.is_char_boundary(*at)).unwrap_or(0);
        self.words.drain(..over);
        self.spoken.push(spoken);
    }

    /// A result came whole: only what is said from here on may be another.
    pub(super) fn settle(&mut self) {
        self.words.clear();
        for spoken in &mut self.spoken {
            spoken.settled = true;
        }
    }

    /// The result that was told in pieces.
    pub(super) fn result(&self) -> Held {
        let texts = self.spoken.iter().rev().filter(|spoken| !spoken.settled).map(|spoken| &spoken.text);
        for text in texts.chain([&self.words]) {
            match of_result((ending(text), String::new())) {
                found @ (Held::Result(..) | Held::Wrong(_)) => return found,
                Held::Announce(_) | Held::Content => {}
            }
        }
        if begins_result(&self.words) {
            return Held::Wrong("TASK_RESULT: its JSON cannot be read".into());
        }
        Held::Content
    }

    /// The last words, whole.
    pub(super) fn last(&self) -> &str {
        self.spoken.iter().rev().map(|spoken| spoken.text.as_str()).find(|text| !text.is_empty()).unwrap_or_default()
    }

    /// The last JSON.
    pub(super) fn json(&self) -> Option<Value> {
        self.spoken.iter().rev().find_map(Spoken::json)
    }
}

impl Spoken {
    fn json(&self) -> Option<Value> {
        let whole = self.data.clone().or_else(|| json(&self.text)).or_else(|| self.alone.clone());
        whole.filter(|value| !is_result(value) && value["type"] != Kind::Announce.name())
    }
}

/// Whether somebody meant to write a result, as `"type": "TASK_RESULT"`.
fn begins_result(text: &str) -> bool {
    text.match_indices("\"TASK_RESULT\"").any(|(at, _)| {
        let before = text[..at].trim_end().strip_suffix(':').map(str::trim_end);
        before.is_some_and(|before| before.ends_with("\"type\""))
    })
}

/// The JSON a text is, without the fence people and models put around it.
fn json(text: &str) -> Option<Value> {
    let text = text.trim();
    let fenced = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let bare = fenced.map_or(text, |inner| inner.strip_prefix("json").unwrap_or(inner).trim());
    serde_json::from_str(bare).ok()
}
