//! Batches: the commits that are flushed together, under one number and one checksum.

use super::entry::Entry;
use super::file::BLOCK;
use crate::sqlite::Sync;
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

/// The first block of a file: whose journal it is, how it was flushed, and a number drawn each time the file is begun.
/// That number is in every checksum, so that nothing left over from before counts.
pub fn header(epoch: &str, salt: u64, sync: Sync) -> Vec<u8> {
    let loose = u8::from(sync == Sync::Normal);
    let rest = [&salt.to_le_bytes()[..], &[loose, epoch.len() as u8], epoch.as_bytes()].concat();
    [MARK.as_slice(), &crc32fast::hash(&rest).to_le_bytes(), &rest].concat()
}

enum Header {
    /// Never begun.
    Unused,
    /// Of a store that was here before, begun with this number.
    Foreign(u64),
    Ours {
        salt: u64,
        loose: bool,
    },
}

fn read_header(bytes: &[u8], epoch: &str) -> Result<Header, Fault> {
    let block = bytes.get(..BLOCK).unwrap_or(bytes);
    if block.iter().all(|byte| *byte == 0) {
        return Ok(Header::Unused);
    }
    let fields = || {
        let (sum, rest) = block.strip_prefix(MARK.as_slice())?.split_first_chunk()?;
        let (salt, after) = rest.split_first_chunk()?;
        let ([loose, length], name) = after.split_first_chunk()?;
        let name = name.get(..usize::from(*length))?;
        let sound = u32::from_le_bytes(*sum) == crc32fast::hash(&rest[..10 + name.len()]);
        sound.then_some((u64::from_le_bytes(*salt), *loose != 0, name))
    };
    match fields() {
        Some((salt, loose, name)) if name == epoch.as_bytes() => Ok(Header::Ours { salt, loose }),
        Some((salt, ..)) => Ok(Header::Foreign(salt)),
        None => Err(Fault::new("the store's journal has a first block that is damaged, or of another Flotilla")),
    }
}

/// Writes a batch into `out`, which holds nothing else; `seal` completes it.
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
}

/// Makes a batch valid in the file that was begun with this number.
pub fn seal(batch: &mut [u8], salt: u64) {
    let sum = checksum(salt, &batch[4..]);
    batch[..4].copy_from_slice(&sum.to_le_bytes());
}

fn checksum(salt: u64, bytes: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&salt.to_le_bytes());
    sum.update(bytes);
    sum.finalize()
}

/// What a file holds.
#[derive(Default)]
pub struct Contents {
    /// The batches after those the tables have.
    pub batches: Vec<Batch>,
    /// Written without a flush each: after a power cut there may be holes.
    pub loose: bool,
}

/// The batches of a file of this store after `applied`: each valid, each one above the one before. What a crash cut off
/// was never acknowledged; a hole with later batches behind it is damage, and said to be.
pub fn read_all(bytes: &[u8], epoch: &str, applied: u64) -> Result<Contents, Fault> {
    let (salt, loose) = match read_header(bytes, epoch)? {
        Header::Ours { salt, loose } => (salt, loose),
        Header::Unused => return Ok(Contents::default()),
        // To write over it would be to lose commits that somebody was told are kept.
        Header::Foreign(salt) if read_at(bytes, BLOCK, salt).is_some() => {
            return Err(Fault::new("a journal of another store lies beside this one, and holds commits of it"));
        }
        Header::Foreign(_) => return Ok(Contents::default()),
    };
    let mut contents = Contents { batches: Vec::new(), loose };
    let (mut offset, mut last) = (BLOCK, None);
    while let Some((batch, length)) = read_at(bytes, offset, salt) {
        if last.is_some_and(|last: u64| last.checked_add(1) != Some(batch.number)) {
            break;
        }
        last = Some(batch.number);
        offset += (PREFACE + length).next_multiple_of(BLOCK);
        if batch.number > applied {
            contents.batches.push(batch);
        }
    }
    let beyond = last.unwrap_or(0).max(applied);
    let later = |offset: usize| read_at(bytes, offset, salt).is_some_and(|(batch, _)| batch.number > beyond);
    if !loose && (offset + BLOCK..bytes.len()).step_by(BLOCK).any(later) {
        return Err(Fault::new(format!("the store's journal is damaged behind batch {beyond}")));
    }
    Ok(contents)
}

fn read_at(bytes: &[u8], offset: usize, salt: u64) -> Option<(Batch, usize)> {
    let (sum, rest) = bytes.get(offset..)?.split_first_chunk()?;
    let (number, after) = rest.split_first_chunk()?;
    let (length, after) = after.split_first_chunk()?;
    let (count, body) = after.split_first_chunk()?;
    let length = u32::from_le_bytes(*length) as usize;
    let count = u32::from_le_bytes(*count);
    if count == 0 || length > body.len() || u32::from_le_bytes(*sum) != checksum(salt, &rest[..PREFACE - 4 + length]) {
        return None;
    }
    Some((Batch { number: u64::from_le_bytes(*number), count, bytes: body[..length].to_vec() }, length))
}
