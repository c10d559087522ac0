//! What a run said and the hub has not acknowledged, in a file: it survives a cut, and the end of this process.

use flotilla_protocol::hub_frame::worker::{Gone, Told};
use flotilla_protocol::work::Report;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A file of which more than this is acknowledged is written anew.
const STALE: u64 = 1024 * 1024;

/// How much all spools of a worker may hold together.
#[derive(Debug)]
pub struct Room {
    most: u64,
    used: AtomicU64,
}

impl Room {
    pub fn new(most: u64) -> Arc<Self> {
        Arc::new(Self { most, used: AtomicU64::new(0) })
    }

    fn enter(&self, bytes: u64, whatever: bool) -> bool {
        let fits = |used: u64| (whatever || used.saturating_add(bytes) <= self.most).then_some(used + bytes);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    fn leave(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Why something could not be kept.
#[derive(Debug)]
pub enum NotKept {
    /// As much is kept as may be.
    Full(u64),
    /// More was said at once than the hub takes.
    TooLarge(usize, usize),
    Failed(io::Error),
}

impl std::fmt::Display for NotKept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Full(most) => write!(f, "what waits for the hub has reached its bound of {most} bytes"),
            Self::TooLarge(size, most) => {
                write!(f, "the agent said {size} bytes at once, and the hub takes {most} (sockets.frame)")
            }
            Self::Failed(error) => write!(f, "it cannot be kept on the disk: {error}"),
        }
    }
}

/// One frame in the file.
#[derive(Debug, Clone, Copy)]
struct Entry {
    number: u64,
    at: u64,
    length: u64,
}

/// The first line: the number the next frame gets, if none follows.
#[derive(Serialize, Deserialize)]
struct First {
    next: u64,
}

/// A line, as far as its number is wanted.
#[derive(Deserialize)]
struct Numbered {
    number: u64,
}

pub struct Spool {
    pub task: String,
    pub run: u32,
    path: PathBuf,
    file: File,
    /// The file's length, behind which is nothing that counts.
    end: u64,
    next: u64,
    entries: VecDeque<Entry>,
    /// How many of the entries were sent on this connection.
    sent: usize,
    room: Arc<Room>,
    /// Something in the file is not what a worker writes; what follows it is lost.
    pub is_damaged: bool,
}

impl Drop for Spool {
    fn drop(&mut self) {
        self.room.leave(self.entries.iter().map(|entry| entry.length).sum());
    }
}

impl Spool {
    pub fn create(folder: &Path, task: &str, run: u32, room: &Arc<Room>) -> io::Result<Self> {
        let path = folder.join(format!("{task}.{run}"));
        let file = open(&path, true)?;
        let (task, room, entries) = (task.to_owned(), Arc::clone(room), VecDeque::new());
        let mut spool = Self { task, run, path, file, end: 0, next: 1, entries, sent: 0, room, is_damaged: false };
        spool.begin()?;
        Ok(spool)
    }

    /// The task and the run a file is of. None if it is not a run's.
    pub fn named(path: &Path) -> Option<(String, u32)> {
        let (task, run) = path.file_name()?.to_str()?.rsplit_once('.')?;
        Some((task.to_owned(), run.parse().ok()?))
    }

    /// What an earlier process left. None if the file is not a run's.
    pub fn leftover(path: &Path, room: &Arc<Room>) -> io::Result<Option<Self>> {
        let Some((task, run)) = Self::named(path) else { return Ok(None) };
        let file = open(path, false)?;
        let (path, room, entries) = (path.to_owned(), Arc::clone(room), VecDeque::new());
        let mut spool = Self { task, run, path, file, end: 0, next: 1, entries, sent: 0, room, is_damaged: false };
        spool.read()?;
        Ok(Some(spool))
    }

    /// Takes in what is whole; the last line may have been cut off.
    fn read(&mut self) -> io::Result<()> {
        let mut lines = BufReader::new(self.file.try_clone()?);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line)? > 0 && line.ends_with(b"\n") {
            let length = line.len() as u64;
            if self.end == 0 {
                self.next = serde_json::from_slice::<First>(&line).map_or(1, |first| first.next);
            } else if let Ok(Numbered { number }) = serde_json::from_slice(&line) {
                self.room.enter(length, true);
                self.entries.push_back(Entry { number, at: self.end, length });
                self.next = number + 1;
            } else {
                self.is_damaged = true;
                break;
            }
            self.end += length;
            line.clear();
        }
        if self.end == 0 { self.begin() } else { Ok(()) }
    }

    /// An empty file, but for its first line.
    fn begin(&mut self) -> io::Result<()> {
        let first = format!("{}\n", serde_json::json!(First { next: self.next }));
        self.file.set_len(0)?;
        self.file.write_all_at(first.as_bytes(), 0)?;
        self.end = first.len() as u64;
        Ok(())
    }

    /// Whether so many bytes more could be kept.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.room.used.load(Ordering::Relaxed).saturating_add(bytes as u64) <= self.room.most
    }

    /// Keeps what the agent said, in a frame of at most so many bytes.
    pub fn tell(&mut self, reports: Vec<Report>, most: usize) -> Result<(), NotKept> {
        let told = Told { task_id: self.task.clone(), run: self.run, number: self.next, reports };
        let frame = told.frame();
        if frame.len() > most {
            return Err(NotKept::TooLarge(frame.len(), most));
        }
        self.keep(frame, false)
    }

    /// Keeps that nothing of the run is left. There is always room for that.
    pub fn end(&mut self, reason: &str) -> Result<(), NotKept> {
        let gone = Gone { task_id: self.task.clone(), run: self.run, number: self.next, reason: reason.to_owned() };
        self.keep(gone.frame(), true)
    }

    fn keep(&mut self, mut frame: String, whatever: bool) -> Result<(), NotKept> {
        frame.push('\n');
        let length = frame.len() as u64;
        if !self.room.enter(length, whatever) {
            return Err(NotKept::Full(self.room.most));
        }
        if let Err(error) = self.file.write_all_at(frame.as_bytes(), self.end) {
            self.room.leave(length);
            return Err(NotKept::Failed(error));
        }
        self.entries.push_back(Entry { number: self.next, at: self.end, length });
        self.next += 1;
        self.end += length;
        Ok(())
    }

    /// The number the next frame gets.
    pub fn next_number(&self) -> u64 {
        self.next
    }

    /// The next frame this connection was not sent yet; none while so many are sent and not acknowledged.
    pub fn unsent(&mut self, in_flight: usize) -> io::Result<Option<String>> {
        let Some(entry) = self.entries.get(self.sent).filter(|_| self.sent < in_flight) else { return Ok(None) };
        let length = usize::try_from(entry.length - 1).unwrap_or(usize::MAX);
        let mut frame = vec![0; length];
        self.file.read_exact_at(&mut frame, entry.at)?;
        self.sent += 1;
        String::from_utf8(frame).map(Some).map_err(|_| io::Error::other("the file holds something else"))
    }

    /// Whether this connection was sent everything.
    pub fn is_sent(&self) -> bool {
        self.sent >= self.entries.len()
    }

    /// A new connection was sent nothing.
    pub fn rewind(&mut self) {
        self.sent = 0;
    }

    /// The hub has kept everything up to this number.
    pub fn acknowledged(&mut self, number: u64) -> io::Result<()> {
        while let Some(entry) = self.entries.front().copied().filter(|entry| entry.number <= number) {
            self.entries.pop_front();
            self.sent = self.sent.saturating_sub(1);
            self.room.leave(entry.length);
        }
        match self.entries.front().map(|entry| entry.at) {
            None => self.begin(),
            Some(at) if at > STALE && at > self.end / 2 => self.compact(at),
            Some(_) => Ok(()),
        }
    }

    /// Writes the file anew, with nothing but what is still wanted.
    fn compact(&mut self, from: u64) -> io::Result<()> {
        let mut rest = vec![0; usize::try_from(self.end - from).unwrap_or(usize::MAX)];
        self.file.read_exact_at(&mut rest, from)?;
        let first = format!("{}\n", serde_json::json!(First { next: self.next }));
        let beside = self.path.with_extension("new");
        let file = open(&beside, true)?;
        file.write_all_at(first.as_bytes(), 0)?;
        file.write_all_at(&rest, first.len() as u64)?;
        std::fs::rename(&beside, &self.path)?;
        let shift = from - first.len() as u64;
        self.entries.iter_mut().for_each(|entry| entry.at -= shift);
        (self.file, self.end) = (file, self.end - shift);
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The hub wants nothing more of this run.
    pub fn remove(self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::warn!(file = %self.path.display(), %error, "the file of a run that is over stays behind");
        }
    }
}

fn open(path: &Path, new: bool) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(new).truncate(new).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::{NotKept, Room, Spool};
    use flotilla_protocol::a2a::model::TaskState;
    use flotilla_protocol::work::{Contents, Report};

    fn note(text: &str) -> Vec<Report> {
        let contents = Some(Contents::text(text));
        vec![Report::Status { state: TaskState::Working, contents, metadata: None }]
    }

    fn numbers(spool: &mut Spool) -> Vec<u64> {
        spool.rewind();
        let frames = std::iter::from_fn(|| spool.unsent(9).expect("the file can be read"));
        frames
            .map(|frame| serde_json::from_str::<serde_json::Value>(&frame).unwrap()["number"].as_u64().unwrap())
            .collect()
    }

    #[test]
    fn what_is_not_acknowledged_is_found_by_the_next_process() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().to_owned();
        let room = Room::new(10_000);
        let mut spool = Spool::create(&folder, "t.x", 3, &room).unwrap();
        for text in ["one", "two", "three"] {
            spool.tell(note(text), 1_000_000).unwrap();
        }
        assert_eq!(numbers(&mut spool), [1, 2, 3]);
        spool.acknowledged(1).unwrap();
        drop(spool);
        let path = folder.join("t.x.3");
        // As if this process had been killed while it wrote.
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.extend(b"{\"number\":4,\"rep");
        std::fs::write(&path, bytes).unwrap();
        let mut again = Spool::leftover(&path, &room).unwrap().expect("a run's file");
        assert_eq!((again.task.as_str(), again.run), ("t.x", 3));
        again.end("it was killed").unwrap();
        assert_eq!(numbers(&mut again), [1, 2, 3, 4], "what was acknowledged is said again, and known by its number");
        again.acknowledged(4).unwrap();
        assert!(again.is_empty());
        drop(again);
        assert!(Spool::named(&folder.join("t.x.3.unreadable")).is_none(), "what is set aside is no run's");
        let mut empty = Spool::leftover(&path, &room).unwrap().unwrap();
        empty.tell(note("five"), 1_000_000).unwrap();
        assert_eq!(numbers(&mut empty), [5], "numbers go on");
        empty.remove();
        assert!(!path.exists());
    }

    #[test]
    fn there_is_a_bound_and_a_file_does_not_grow_for_ever() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().to_owned();
        let room = Room::new(3 * 1024 * 1024);
        let mut spool = Spool::create(&folder, "t", 1, &room).unwrap();
        let large = "x".repeat(500_000);
        for _ in 0..6 {
            spool.tell(note(&large), 1_000_000).unwrap();
        }
        assert!(matches!(spool.tell(note(&large), 1_000_000), Err(NotKept::Full(3_145_728))));
        assert!(matches!(spool.tell(note(&large), 1_000), Err(NotKept::TooLarge(_, 1_000))));
        spool.end("no room").unwrap();
        spool.acknowledged(5).unwrap();
        assert!(std::fs::metadata(folder.join("t.1")).unwrap().len() < 1_000_000, "it was written anew");
        assert_eq!(numbers(&mut spool), [6, 7]);
        spool.tell(note(&large), 1_000_000).unwrap();
        assert_eq!(numbers(&mut spool), [6, 7, 8]);
    }
}
