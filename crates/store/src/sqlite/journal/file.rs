//! One file of the journal: batches of commits in whole blocks, written past the page cache where that can be done.
//!
//! Blocks are written over blocks that exist already, so that a flush does not have to note a new length as well; a
//! file grows ahead of what is written to it and is used again from its start.

use super::batch;
use crate::sqlite::Sync;
use flotilla_core::error::Fault;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// What is written at once is a multiple of this, and begins at one.
pub const BLOCK: usize = 4096;
/// By how much a file grows ahead.
const GROWTH: usize = 1024 * 1024;
/// And in what steps: the room for one is kept.
const STRIDE: usize = 128 * 1024;
/// What a file keeps when it is begun anew.
const MOST: usize = 64 * 1024 * 1024;

pub struct Blocks {
    path: PathBuf,
    file: File,
    sync: Sync,
    /// The file flushes what it is given by itself.
    flushes: bool,
    /// How far there are blocks to write over.
    length: usize,
    /// Where the next batch goes.
    end: usize,
    /// The number of the last batch in it; 0 where there is none.
    pub last: u64,
    /// Drawn when the file was begun.
    pub salt: u64,
    /// A batch that was refused may lie at the end, and must be spoiled before anything else.
    spoil: bool,
    buffer: Vec<u8>,
}

impl Blocks {
    pub fn open(path: &Path, sync: Sync) -> Result<Self, Fault> {
        let (file, flushes) = open(path, sync)?;
        let length = file.metadata().map_err(failed(path, "looking at"))?.len() as usize / BLOCK * BLOCK;
        let path = path.to_owned();
        let (end, buffer) = (BLOCK, Vec::new());
        Ok(Self { path, file, sync, flushes, length, end, last: 0, salt: 0, spoil: false, buffer })
    }

    pub fn end(&self) -> usize {
        self.end
    }

    /// Begins the file anew, for this store. One that grew too large is cut back.
    pub fn begin(&mut self, epoch: &str) -> Result<(), Fault> {
        let mut salt = [0; 8];
        getrandom::fill(&mut salt).map_err(|error| Fault::new(format!("random numbers: {error}")))?;
        let salt = u64::from_le_bytes(salt);
        if self.length > MOST {
            self.file.set_len(MOST as u64).map_err(failed(&self.path, "cutting back"))?;
            self.length = MOST;
        }
        self.write_at(0, &batch::header(epoch, salt, self.sync))?;
        (self.end, self.last, self.salt, self.spoil) = (BLOCK, 0, salt, false);
        Ok(())
    }

    /// Writes a batch behind the ones before it. When this returns, it is on the disk (as far as `sync` asks). What was
    /// refused must not be found there after a crash either: it is spoiled, and the next one takes its place.
    pub fn append(&mut self, number: u64, batch: &[u8]) -> Result<(), Fault> {
        if self.spoil {
            self.write_at(self.end, &[])?;
            self.spoil = false;
        }
        if let Err(fault) = self.write_at(self.end, batch) {
            self.spoil = self.write_at(self.end, &[]).is_err();
            return Err(fault);
        }
        self.end += batch.len().next_multiple_of(BLOCK);
        self.last = number;
        if self.buffer.len() > GROWTH {
            // A large one is rare.
            self.buffer = Vec::new();
        }
        Ok(())
    }

    fn write_at(&mut self, offset: usize, bytes: &[u8]) -> Result<(), Fault> {
        let length = bytes.len().next_multiple_of(BLOCK).max(BLOCK);
        self.grow(offset + length)?;
        let start = aligned(&mut self.buffer, length);
        let blocks = &mut self.buffer[start..start + length];
        blocks[..bytes.len()].copy_from_slice(bytes);
        blocks[bytes.len()..].fill(0);
        write(&mut self.file, &mut self.flushes, &self.path, blocks, offset).map_err(failed(&self.path, "writing"))?;
        self.flush()
    }

    fn flush(&self) -> Result<(), Fault> {
        if self.flushes || self.sync == Sync::Normal {
            return Ok(());
        }
        self.file.sync_data().map_err(failed(&self.path, "flushing"))
    }

    fn grow(&mut self, needed: usize) -> Result<(), Fault> {
        if needed <= self.length {
            return Ok(());
        }
        let start = aligned(&mut self.buffer, STRIDE);
        let zeros = &mut self.buffer[start..start + STRIDE];
        zeros.fill(0);
        let end = self.length + (needed - self.length).next_multiple_of(GROWTH);
        while self.length < end {
            let offset = self.length;
            write(&mut self.file, &mut self.flushes, &self.path, zeros, offset)
                .map_err(failed(&self.path, "growing"))?;
            self.length += STRIDE;
        }
        self.flush()
    }
}

/// A file system may take the wish to write past the page cache and refuse the write; then it is opened without.
fn write(file: &mut File, flushes: &mut bool, path: &Path, blocks: &[u8], offset: usize) -> io::Result<()> {
    match file.write_all_at(blocks, offset as u64) {
        Err(error) if *flushes && error.kind() == ErrorKind::InvalidInput => {
            (*file, *flushes) = (options().open(path)?, false);
            file.write_all_at(blocks, offset as u64)
        }
        written => written,
    }
}

/// The batches of a file after `applied`; none if there is no such file.
pub fn read(path: &Path, epoch: &str, applied: u64) -> Result<batch::Contents, Fault> {
    match std::fs::read(path) {
        Ok(bytes) => batch::read_all(&bytes, epoch, applied).map_err(|fault| {
            Fault::new(format!(
                "{}: {fault}. Put back what was there, or move it away to go on without what it holds",
                path.display()
            ))
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(batch::Contents::default()),
        Err(error) => Err(failed(path, "reading")(error)),
    }
}

fn failed<'a>(path: &'a Path, what: &'a str) -> impl Fn(io::Error) -> Fault + 'a {
    move |error| Fault::new(format!("{what} {}: {error}", path.display()))
}

/// Makes room for `length` bytes that begin at a block's border in memory, and says where they begin.
fn aligned(buffer: &mut Vec<u8>, length: usize) -> usize {
    if buffer.len() < length + BLOCK {
        *buffer = vec![0; length + BLOCK];
    }
    buffer.as_ptr().align_offset(BLOCK)
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options
}

/// Not every file system can be written past the page cache; where it cannot, each write is flushed.
#[cfg(target_os = "linux")]
fn open(path: &Path, sync: Sync) -> Result<(File, bool), Fault> {
    use std::os::unix::fs::OpenOptionsExt;
    if sync == Sync::Full
        && let Ok(file) = options().mode(0o600).custom_flags(libc::O_DIRECT | libc::O_DSYNC).open(path)
    {
        return Ok((file, true));
    }
    let file = options().mode(0o600).open(path).map_err(failed(path, "opening"))?;
    Ok((file, false))
}

#[cfg(not(target_os = "linux"))]
fn open(path: &Path, _: Sync) -> Result<(File, bool), Fault> {
    let file = options().open(path).map_err(failed(path, "opening"))?;
    Ok((file, false))
}
