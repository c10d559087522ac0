//! What a fuzzer calls: the journal's readers, and a writer of batches whose checksum is right whatever they hold.

use super::batch::{self, PREFACE};
use super::entry::Entry;
use super::file::BLOCK;
use crate::sqlite::Sync;
use flotilla_core::error::Fault;

/// What files made here are begun with.
const SALT: u64 = 7;

/// A file of a journal, of batches given as number, count of entries and content.
pub fn file(epoch: &str, batches: &[(u64, u32, &[u8])]) -> Vec<u8> {
    let mut file = batch::header(epoch, SALT, Sync::Full);
    file.resize(BLOCK, 0);
    for (number, count, content) in batches {
        let mut bytes = vec![0; PREFACE];
        bytes[4..12].copy_from_slice(&number.to_le_bytes());
        bytes[12..16].copy_from_slice(&(content.len() as u32).to_le_bytes());
        bytes[16..20].copy_from_slice(&count.to_le_bytes());
        bytes.extend_from_slice(content);
        batch::seal(&mut bytes, SALT);
        bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
        file.extend_from_slice(&bytes);
    }
    file
}

/// The numbers of the batches in a file, each with its bytes as they would be written again.
pub fn batches(file: &[u8], epoch: &str) -> Result<Vec<(u64, Vec<u8>)>, Fault> {
    let mut written = Vec::new();
    for read in batch::read_all(file, epoch, 0)?.batches {
        let mut out = Vec::new();
        batch::encode(read.number, &read.entries()?, &mut out);
        batch::seal(&mut out, SALT);
        written.push((read.number, out));
    }
    Ok(written)
}

/// One entry as it would be written again, and how many bytes it was read from.
pub fn entry(bytes: &[u8]) -> Result<(Vec<u8>, usize), Fault> {
    let mut rest = bytes;
    let entry = Entry::decode(&mut rest)?;
    let mut written = Vec::new();
    entry.encode(&mut written);
    Ok((written, bytes.len() - rest.len()))
}
