//! Runs on record: what a worker that died left behind is found by the next one, and ended.

use crate::reaper::tree::{self, Process};
use crate::reaper::{MARK, strike};
use rustix::process::Signal;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Between two looks at what is still alive.
const LOOK: Duration = Duration::from_millis(10);
/// How long a reaper may take to end what is below it.
const PATIENCE: Duration = Duration::from_secs(5);
/// What cannot be ended in this time is in the kernel's hands.
const GIVE_UP: Duration = Duration::from_secs(10);

/// A folder with a file for each run under way, named after its mark; in it the worker, which is a process and when it
/// started.
#[derive(Debug, Clone)]
pub struct Records(PathBuf);

/// A run on record. Dropping it takes it off.
pub struct Recorded(PathBuf);

impl Records {
    /// Opens a folder, and ends what is left of the runs of workers that are gone; how many processes that were.
    pub fn open(folder: PathBuf) -> std::io::Result<(Self, usize)> {
        std::fs::create_dir_all(&folder)?;
        let mut ended = 0;
        for file in std::fs::read_dir(&folder)? {
            ended += sweep(&file?.path());
        }
        Ok((Self(folder), ended))
    }

    /// Puts a run on record, before it starts.
    pub fn record(&self, mark: &str) -> std::io::Result<Recorded> {
        let worker = tree::find(std::process::id()).map_or(String::new(), |own| format!("{} {}", own.pid, own.start));
        let file = self.0.join(mark);
        std::fs::write(&file, worker)?;
        Ok(Recorded(file))
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        // A record that stays is swept at the next start, and finds nothing.
        let _ = std::fs::remove_file(&self.0);
    }
}

fn sweep(file: &Path) -> usize {
    if worker_of(file).is_some_and(|worker| tree::find(worker.pid) == Some(worker)) {
        return 0;
    }
    let mark = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let ended = end_marked(&|found| found == mark);
    let _ = std::fs::remove_file(file);
    ended
}

/// Ends whatever carries the marks of runs whose worker is gone; how many processes that were. A reaper among them is at it
/// already, unless it was halted, and finds also what carries no mark: it is only ended if it does not end by itself, and
/// not before all below it, which nobody would find any more.
pub fn end_marked(is_meant: &dyn Fn(&str) -> bool) -> usize {
    let (started, mut ended) = (Instant::now(), HashSet::new());
    while started.elapsed() < GIVE_UP {
        let alive = tree::marked(MARK, is_meant);
        if alive.is_empty() {
            break;
        }
        let is_patient = started.elapsed() < PATIENCE;
        for reaper in alive.iter().filter(|process| is_patient && process.is_reaper()) {
            reaper.signal(Signal::CONT);
        }
        ended.extend(strike(|| {
            let marked = tree::marked(MARK, is_meant);
            let (reapers, mut doomed): (Vec<_>, Vec<_>) = marked.into_iter().partition(Process::is_reaper);
            for reaper in reapers.into_iter().filter(|_| !is_patient) {
                let below = tree::below(reaper.pid);
                doomed.extend(if below.is_empty() { vec![reaper] } else { below });
            }
            doomed
        }));
        std::thread::sleep(LOOK);
    }
    ended.len()
}

fn worker_of(file: &Path) -> Option<Process> {
    let text = std::fs::read_to_string(file).ok()?;
    let (pid, start) = text.trim().split_once(' ')?;
    Some(Process { pid: pid.parse().ok()?, start: start.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::Records;
    use crate::reaper::MARK;
    use std::process::Command;

    #[test]
    fn what_a_dead_worker_left_is_ended_and_what_a_living_one_runs_is_not() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("runs");
        let marked = |mark: &str| Command::new("sleep").arg("600").env(MARK, mark).spawn().unwrap();
        let (dead, living) = (format!("dead-{}", std::process::id()), format!("living-{}", std::process::id()));
        let (mut left, mut runs) = (marked(&dead), marked(&living));
        let (records, _) = Records::open(folder.clone()).unwrap();
        let record = records.record(&living).unwrap();
        std::fs::write(folder.join(&dead), "1 7").unwrap();
        assert_eq!(Records::open(folder.clone()).unwrap().1, 1);
        assert!(!left.wait().unwrap().success());
        assert!(runs.try_wait().unwrap().is_none(), "its worker is this process");
        drop(record);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        runs.kill().unwrap();
        runs.wait().unwrap();
    }
}
