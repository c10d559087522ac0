//! The log's own forms: a change as stored bytes, and a cursor that points into a task's log.

use crate::error::Fault;
use flotilla_protocol::event::{Change, Event};
use std::fmt;

/// What most changes take when they are stored: room for it is made once.
const USUAL: usize = 1024;

/// The events of a change as they are stored: a JSON array, so that a person can read the store.
pub fn encode(change: &Change) -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::with_capacity(USUAL);
    serde_json::to_writer(&mut bytes, &change.events)
        .map_err(|error| Fault::new(format!("encoding events: {error}")))?;
    Ok(bytes)
}

pub fn decode(bytes: &[u8]) -> Result<Vec<Event>, Fault> {
    serde_json::from_slice(bytes).map_err(|error| Fault::new(format!("decoding events: {error}")))
}

/// The identity of a store: new only for a new store, a restored one or one in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Epoch(pub String);

/// `<epoch>.<peer_seq>`: where a reader stands in a task's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    pub epoch: String,
    pub peer_seq: u64,
}

impl Cursor {
    pub fn parse(text: &str) -> Option<Self> {
        let (epoch, number) = text.trim().rsplit_once('.')?;
        let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        let peer_seq = number.parse().ok().filter(|_| digits)?;
        (!epoch.is_empty()).then(|| Self { epoch: epoch.to_owned(), peer_seq })
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.epoch, self.peer_seq)
    }
}

#[cfg(test)]
mod tests {
    use super::Cursor;

    #[test]
    fn cursors_read_back_and_nonsense_does_not() {
        let cursor = Cursor { epoch: "k3v9".into(), peer_seq: 12 };
        assert_eq!(Cursor::parse(&cursor.to_string()), Some(cursor));
        for nonsense in ["", "12", ".12", "e.", "e.-1", "e.x", "e.+1", "e.99999999999999999999"] {
            assert_eq!(Cursor::parse(nonsense), None, "{nonsense}");
        }
    }
}
