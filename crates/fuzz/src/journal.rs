//! What is read back from the disk: the journal's files and entries, and the events in the tables.

use crate::text;
use flotilla_core::log;
use flotilla_protocol::event::Change;
use flotilla_protocol::time::Millis;
use flotilla_store::sqlite::fuzz;

const EPOCH: &str = "0123456789ab";

/// A file as it is, and one whose checksums are right: batches of number, count, length and content.
pub fn journal_file(bytes: &[u8]) {
    check_batches(bytes);
    let mut batches = Vec::new();
    let mut rest = bytes;
    while let Some(([number @ .., count, low, high], after)) = rest.split_first_chunk::<11>() {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(after.len());
        let (content, after) = after.split_at(length);
        batches.push((u64::from_le_bytes(*number), u32::from(*count), content));
        rest = after;
    }
    check_batches(&fuzz::file(EPOCH, &batches));
}

fn check_batches(file: &[u8]) {
    let Ok(batches) = fuzz::batches(file, EPOCH) else { return };
    for pair in batches.windows(2) {
        assert_eq!(pair[1].0, pair[0].0 + 1, "batches follow each other");
    }
    for (number, written) in &batches {
        let found = file.windows(written.len()).any(|window| window == written);
        assert!(found, "batch {number} would be written differently");
    }
}

/// One commit.
pub fn journal_entry(bytes: &[u8]) {
    if let Ok((written, read)) = fuzz::entry(bytes) {
        assert_eq!(written, bytes[..read], "a commit that is read is the one that was written");
    }
}

/// The events of one change.
pub fn stored_events(bytes: &[u8]) {
    if text(bytes).is_none() {
        return;
    }
    let Ok(events) = log::decode(bytes) else { return };
    let change = Change { first_seq: 1, first_peer_seq: 1, at: Millis(0), events };
    let written = log::encode(&change).expect("events that were read can be written");
    assert_eq!(log::decode(&written).expect("events that were written can be read"), change.events);
    assert_eq!(change.for_peers().count() as u64, change.peer_count());
    assert_eq!(change.last_seq(), change.events.len() as u64);
}
