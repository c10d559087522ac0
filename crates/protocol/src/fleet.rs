//! The fleet handshake 2.0: what orchestrators and workers say to each other about work (docs/handshake.md).

pub mod announce;
pub mod dispatch;
pub mod ending;
pub mod hints;
mod lenient;
pub mod name;
pub mod result;
pub mod route;
mod schema;
pub mod told;
pub mod version;

pub use announce::Announce;
pub use dispatch::Dispatch;
pub use ending::{ending, ending_and_words};
pub use result::TaskResult;
pub use version::Version;

use crate::a2a::model::Part;
use crate::decode::plain;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The extension's name in cards, in `A2A-Extensions`, and for the member of a message's metadata that holds a dispatch.
pub const HANDSHAKE: &str = "urn:flotilla:ext:fleet-handshake:2.0";

/// Fields of a newer version, kept as they came.
pub type More = Map<String, Value>;

/// The three messages, told apart by `type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Announce,
    Dispatch,
    Result,
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Announce, Self::Dispatch, Self::Result];

    /// The value of `type`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Announce => "SESSION_ANNOUNCE",
            Self::Dispatch => "TASK_DISPATCH",
            Self::Result => "TASK_RESULT",
        }
    }

    /// The media type of a part that holds one.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Announce => "application/vnd.flotilla.session-announce+json",
            Self::Dispatch => "application/vnd.flotilla.task-dispatch+json",
            Self::Result => "application/vnd.flotilla.task-result+json",
        }
    }
}

/// The JSON a part is: its data, or a file whose media type says that it holds a dispatch or a result.
pub fn json(part: &Part) -> Option<Cow<'_, str>> {
    if let Some(data) = &part.data.0 {
        return Some(Cow::Borrowed(data.text()));
    }
    let is_ours = [Kind::Dispatch, Kind::Result].iter().any(|kind| kind.media_type() == part.media_type);
    // What is no text is no JSON either: it is read as such, and said to be wrong.
    part.raw.as_ref().filter(|_| is_ours).map(|raw| Cow::Owned(String::from_utf8_lossy(&raw.decode()).into_owned()))
}

/// One of the three, read.
#[derive(Debug, Clone, PartialEq)]
pub enum Handshake {
    Announce(Box<Announce>),
    Dispatch(Box<Dispatch>),
    Result(Box<TaskResult>),
}

/// What a text or a data part turned out to be.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// Nothing of the handshake: content like any other.
    Nothing,
    Handshake(Handshake),
    /// Meant for the handshake, but in a version that is not spoken here: content like any other, and worth a note.
    OtherVersion(Kind, String),
    /// Meant for the handshake, and wrong; says where and what.
    Wrong(String),
}

#[derive(Deserialize)]
struct Envelope {
    #[serde(rename = "type", default)]
    kind: Option<String>,
    #[serde(default)]
    protocol_version: Option<Value>,
}

/// What stands before a text and says nothing. Some editors begin a file with a mark of their own.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || c == '\u{feff}'
}

/// A text without the fence that people and models put around JSON, if all of it is in one.
pub fn unfenced(text: &str) -> &str {
    let text = text.trim_matches(is_blank);
    let Some(inner) = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")) else { return text };
    inner.trim_start_matches(char::is_alphanumeric).trim()
}

/// Reads JSON that may be one of the three messages. Other JSON, and no JSON at all, is nothing.
pub fn read(json: &str) -> Found {
    let json = json.trim();
    if !json.starts_with('{') {
        return Found::Nothing;
    }
    let Ok(Envelope { kind: Some(kind), protocol_version }) = serde_json::from_str::<Envelope>(json) else {
        return Found::Nothing;
    };
    let Some(kind) = Kind::ALL.into_iter().find(|known| known.name() == kind) else { return Found::Nothing };
    let version = match &protocol_version {
        None => return Found::Wrong(format!("{}: protocol_version is missing; write \"2.0\"", kind.name())),
        Some(Value::String(version)) => version.clone(),
        Some(other) => other.to_string(),
    };
    match version.parse::<Version>() {
        Ok(version) if version.is_spoken() => {}
        // Who speaks ours as well is understood; of any other worker only who it is and what it speaks is.
        Ok(_) if kind == Kind::Announce && announce::speaks_ours(json) => {}
        Ok(version) if kind == Kind::Announce => return announced(Announce::of_another_version(version, json)),
        Ok(_) => return Found::OtherVersion(kind, version),
        Err(problem) => return Found::Wrong(format!("{}: protocol_version: {problem}", kind.name())),
    }
    let read = match kind {
        Kind::Announce => of(json).map(|read| Handshake::Announce(Box::new(read))),
        Kind::Dispatch => of(json).map(|read| Handshake::Dispatch(Box::new(read))),
        Kind::Result => of(json).map(|read| Handshake::Result(Box::new(read))),
    };
    let checked = read.and_then(|read| match &read {
        Handshake::Announce(announce) => announce.check().map(|()| read),
        Handshake::Dispatch(dispatch) => dispatch.check().map(|()| read),
        Handshake::Result(result) => result.check().map(|()| read),
    });
    match checked {
        Ok(read) => Found::Handshake(read),
        Err(problem) => Found::Wrong(format!("{}: {problem}", kind.name())),
    }
}

fn announced(announce: Announce) -> Found {
    match announce.check() {
        Ok(()) => Found::Handshake(Handshake::Announce(Box::new(announce))),
        Err(problem) => Found::Wrong(format!("{}: {problem}", Kind::Announce.name())),
    }
}

/// Reads what must be an announcement; the error says what to do.
pub fn announcement(json: &str) -> Result<Box<Announce>, String> {
    match read(json) {
        Found::Handshake(Handshake::Announce(announce)) => Ok(announce),
        Found::Wrong(problem) => Err(problem),
        Found::Nothing | Found::OtherVersion(..) | Found::Handshake(_) => {
            Err("must be a SESSION_ANNOUNCE; docs/fleet.md shows one".into())
        }
    }
}

/// Reads one message; the error names the place.
fn of<T: DeserializeOwned>(json: &str) -> Result<T, String> {
    let mut reader = serde_json::Deserializer::from_str(json);
    serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let (place, problem) = (error.path().to_string(), plain(&error.inner().to_string()));
        if place == "." { problem } else { format!("{place}: {problem}") }
    })
}

/// The JSON of one of the three.
pub fn write<T: Serialize>(message: &T) -> Result<String, String> {
    serde_json::to_string(message).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
