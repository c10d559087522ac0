//! What a worker said in a run, put together from the pieces it came in.

use flotilla_protocol::a2a::model::Part;
use flotilla_protocol::fleet::ending::{CUT, NO_OBJECT, is_cut_off, lists_result, names_result};
use flotilla_protocol::fleet::{
    self, Announce, Found, HANDSHAKE, Handshake, Kind, TaskResult, ending, ending_and_words, read, version,
};
use flotilla_protocol::lineage::find_member;
use flotilla_protocol::wire::Object;
use serde_json::Value;

/// So much of all words is looked at for a result that was cut to pieces some other way.
const WORDS: usize = 64 * 1024;

/// What a part turned out to hold.
pub(super) enum Held {
    /// A result, and the words that stand around it.
    Result(Box<TaskResult>, String),
    Announce(Box<Announce>),
    /// What is wrong with a result that cannot be read, and the words that stand before it.
    Wrong(String, String),
    Content,
}

/// Where in a text a piece stands, as far as that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Span {
    /// It is the text, or its end.
    End,
    /// It is the beginning, and more may follow.
    Beginning,
    Middle,
}

/// What a part holds. Whether a text ends with a result is seen at its end: until then it is content.
pub(super) fn held(part: &Part, span: Span) -> Held {
    let Some(json) = fleet::json(part) else {
        let Some(text) = part.text.as_deref().filter(|_| span != Span::Middle) else { return Held::Content };
        return match of_result(ending_and_words(text)) {
            Held::Result(_, words) if span == Span::Beginning && !words.is_empty() => Held::Content,
            Held::Wrong(..) if span == Span::Beginning => Held::Content,
            held => held,
        };
    };
    match read(&json) {
        Found::Handshake(Handshake::Announce(told)) if part.media_type == Kind::Announce.media_type() => {
            Held::Announce(told)
        }
        Found::Nothing if part.media_type == Kind::Result.media_type() || lists_result(&json) => {
            Held::Wrong(NO_OBJECT.into(), String::new())
        }
        found => of_result((found, String::new())),
    }
}

/// What stands under the handshake's name beside what was said.
pub(super) fn held_beside(metadata: &Object) -> Held {
    find_member(metadata, HANDSHAKE).map_or(Held::Content, |told| of_result((read(told.text()), String::new())))
}

fn of_result((found, words): (Found, String)) -> Held {
    match found {
        Found::Handshake(Handshake::Result(result)) => Held::Result(result, words),
        Found::OtherVersion(Kind::Result, told) => {
            let current = version::CURRENT;
            let problem = format!("TASK_RESULT: protocol_version: {told} is not spoken here; write \"{current}\"");
            Held::Wrong(problem, words)
        }
        Found::Wrong(problem) if problem.starts_with(Kind::Result.name()) => Held::Wrong(problem, words),
        _ => Held::Content,
    }
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

    /// The result that was told in pieces, and the artifact they are of.
    pub(super) fn result(&self) -> (Held, Option<&str>) {
        let texts = || {
            let unsettled = self.spoken.iter().rev().filter(|spoken| !spoken.settled);
            unsettled.map(|spoken| (&spoken.text, spoken.artifact.as_deref())).chain([(&self.words, None)])
        };
        for (text, artifact) in texts() {
            match of_result((ending(text), String::new())) {
                found @ (Held::Result(..) | Held::Wrong(..)) => return (found, artifact),
                Held::Announce(_) | Held::Content => {}
            }
        }
        let is_cut = texts().any(|(text, _)| is_cut_off(text));
        (if is_cut { Held::Wrong(CUT.into(), String::new()) } else { Held::Content }, None)
    }

    /// Whether its words speak of a result as one is written.
    pub(super) fn quotes_result(&self) -> bool {
        self.spoken.iter().any(|spoken| names_result(&spoken.text))
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
        let of_text = || match of_result(ending_and_words(&self.text)) {
            Held::Result(_, words) => json(&words),
            _ => json(&self.text),
        };
        let whole = self.data.clone().or_else(of_text).or_else(|| self.alone.clone());
        whole.filter(|value| !is_result(value) && value["type"] != Kind::Announce.name())
    }
}

/// The JSON a text is, without the fence people and models put around it; or, among words, the only fenced object or list.
fn json(text: &str) -> Option<Value> {
    let text = text.trim();
    let inner = |fenced: &str| serde_json::from_str::<Value>(fenced.strip_prefix("json").unwrap_or(fenced)).ok();
    let fenced = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let among_words = || match text.splitn(4, "```").collect::<Vec<_>>().as_slice() {
        [_, fenced, _] => inner(fenced).filter(|value| value.is_object() || value.is_array()),
        _ => None,
    };
    fenced.map_or_else(|| serde_json::from_str(text).ok(), inner).or_else(among_words)
}
