//! Batches: the commits that are flushed together, under one number and one checksum.

use super::entry::Entry;
use super::file::BLOCK;
use flotilla_core::error::Fault;

const MARK: &[u8; 8] = b"FLOTLOG1";
/// Checksum, number, length and count.
pub const PREFACE: usize = 4 + 8 + 4 + 4;

/// A batch read back; its entries are read when they are wanted.
pub struct Batch {
    pub number: u64,
    count: u32,
    bytes: Vec<u8>,
}

impl Batch {
    pub fn entries(&self) -> Result<Vec<Entry>, Fault> {
        let mut rest = self.bytes.as_slice();
        let entries: Vec<Entry> = (0..self.count).map(|_| Entry::decode(&mut rest)).collect::<Result<_, _>>()?;
        if !rest.is_empty() {
            return Err(Fault::new(format!(
                "batch {} of the store's journal holds more than its commits",
                self.number
            )));
        }
        Ok(entries)
    }
}

/// The first block of a file: whose journal it is.
pub fn header(epoch: &str) -> Vec<u8> {
    [MARK.as_slice(), epoch.as_bytes(), b"\n"].concat()
}

/// Writes a batch into `out`, which holds nothing else.
pub fn encode(number: u64, entries: &[Entry], out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&(entries.len() as u32).to_le_bytes());
    for entry in entries {
        entry.encode(out);
    }
    let length = (out.len() - PREFACE) as u32;
    out[12..16].copy_from_slice(&length.to_le_bytes());
    let sum = crc32fast::hash(&out[4..]);
    out[..4].copy_from_slice(&sum.to_le_bytes());
}

/// The batches of a file of this store: each valid, each one above the one before. What a crash cut off was never
/// acknowledged; a hole with later batches behind it is damage, and said to be.
pub fn read_all(bytes: &[u8], epoch: &str) -> Result<Vec<Batch>, Fault> {
    let mut batches: Vec<Batch> = Vec::new();
    if !bytes.starts_with(&header(epoch)) {
        return Ok(batches);
    }
    let mut offset = BLOCK;
    while let Some(batch) = read_at(bytes, offset) {
        if batches.last().is_some_and(|before| before.number.checked_add(1) != Some(batch.number)) {
            break;
        }
        offset += (PREFACE + batch.bytes.len()).next_multiple_of(BLOCK);
        batches.push(batch);
    }
    let last = batches.last().map_or(0, |batch| batch.number);
    let later = |offset: &usize| read_at(bytes, *offset).is_some_and(|batch| batch.number > last);
    if (offset + BLOCK..bytes.len()).step_by(BLOCK).any(|offset| later(&offset)) {
        return Err(Fault::new(format!("the store's journal is damaged behind batch {last}")));
    }
    Ok(batches)
}

fn read_at(bytes: &[u8], offset: usize) -> Option<Batch> {
    let (sum, rest) = bytes.get(offset..)?.split_first_chunk()?;
    let (number, after) = rest.split_first_chunk()?;
    let (length, after) = after.split_first_chunk()?;
    let (count, body) = after.split_first_chunk()?;
    let length = u32::from_le_bytes(*length) as usize;
    let count = u32::from_le_bytes(*count);
    if count == 0 || length > body.len() || u32::from_le_bytes(*sum) != crc32fast::hash(&rest[..PREFACE - 4 + length]) {
        return None;
    }
    Some(Batch { number: u64::from_le_bytes(*number), count, bytes: body[..length].to_vec() })
}
