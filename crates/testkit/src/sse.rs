//! Server-sent events, read strictly: one line of data per event, as clients in the field expect it.

use crate::http::{Open, find};
use serde_json::Value;

/// One block of a stream: an event, or only a comment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    pub id: Option<String>,
    pub data: Option<String>,
    pub comment: Option<String>,
    pub retry: Option<String>,
    /// The type, where it has one.
    pub event: Option<String>,
}

impl Event {
    /// The data as JSON.
    pub fn json(&self) -> Value {
        let data = self.data.as_deref().expect("the event carries data");
        serde_json::from_str(data).unwrap_or_else(|error| panic!("not JSON ({error}): {data}"))
    }

    /// The frame: what JSON-RPC wraps as `result`, HTTP+JSON sends bare.
    pub fn frame(&self) -> Value {
        let json = self.json();
        json.get("result").cloned().unwrap_or(json)
    }

    /// The number behind the epoch.
    pub fn number(&self) -> u64 {
        let (_, number) = self.cursor().rsplit_once('.').expect("an id is <epoch>.<number>");
        number.parse().expect("an id ends in a number")
    }

    pub fn epoch(&self) -> &str {
        self.cursor().rsplit_once('.').expect("an id is <epoch>.<number>").0
    }

    pub fn cursor(&self) -> &str {
        self.id.as_deref().expect("the event has an id")
    }
}

/// The blocks of an answer that is a stream.
pub(crate) struct Blocks {
    open: Open,
    pending: String,
    /// How much of it has been handed out.
    taken: usize,
    over: bool,
    pub(crate) cut: bool,
}

impl Blocks {
    pub(crate) fn new(open: Open) -> Self {
        assert_eq!(find(&open.headers, "content-type"), Some("text/event-stream"), "a stream has its media type");
        Self { open, pending: String::new(), taken: 0, over: false, cut: false }
    }

    pub(crate) fn headers(&self) -> &[(String, String)] {
        &self.open.headers
    }

    pub(crate) fn next(&mut self) -> Option<Event> {
        loop {
            if let Some((block, _)) = self.pending[self.taken..].split_once("\n\n") {
                self.taken += block.len() + 2;
                return Some(parse(block));
            }
            self.pending.drain(..std::mem::take(&mut self.taken));
            if self.over {
                return None;
            }
            match self.open.piece() {
                Ok(piece) if piece.is_empty() => self.over = true,
                Ok(piece) => self.pending.push_str(std::str::from_utf8(&piece).expect("a stream is UTF-8")),
                Err(_) => (self.over, self.cut) = (true, true),
            }
        }
    }
}

fn parse(block: &str) -> Event {
    let mut event = Event::default();
    for line in block.lines() {
        let (field, value) = line.split_once(':').unwrap_or_else(|| panic!("not a line of a stream: {line:?}"));
        let value = value.strip_prefix(' ').unwrap_or_else(|| panic!("no space after the colon: {line:?}")).to_owned();
        let place = match field {
            "" => &mut event.comment,
            "id" => &mut event.id,
            "data" => &mut event.data,
            "retry" => &mut event.retry,
            "event" => &mut event.event,
            other => panic!("a field clients do not know: {other}"),
        };
        assert!(place.replace(value).is_none(), "two lines of the same field: {block:?}");
    }
    event
}
