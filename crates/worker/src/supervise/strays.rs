//! What a reaper leaves that is killed itself: the kernel hands it to this process, which ends it.
//!
//! A reaper and all below it are in sessions of their own, and orphans below a reaper that lives are handed to that one.
//! So a child of this process in another session is either a reaper of its own, or a stray.

use crate::reaper::tree::{self, Process};
use crate::reaper::{MARK, strike};
use rustix::process::{Pid, WaitOptions, getpid, set_child_subreaper, waitpid};
use std::collections::{BTreeSet, HashSet};
use std::io;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};

/// Between two looks at what is still alive.
const LOOK: Duration = Duration::from_millis(10);
/// So many looks that find nothing are enough.
const LOOKS: u32 = 3;
/// What cannot be ended in this time is in the kernel's hands.
const GIVE_UP: Duration = Duration::from_secs(10);

/// Children that were there before this process adopted any: whoever started it may have left it some.
static BEFORE: OnceLock<Vec<Process>> = OnceLock::new();
/// The reapers this process has started and not taken in yet.
static REAPERS: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

fn reapers() -> MutexGuard<'static, BTreeSet<u32>> {
    REAPERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a reaper. From the first one on, this process adopts orphans.
pub fn spawn(command: &mut Command) -> io::Result<Child> {
    BEFORE.get_or_init(|| {
        let before = tree::children(std::process::id()).iter().map(|child| child.process).collect();
        if let Err(error) = set_child_subreaper(Some(getpid())) {
            tracing::warn!(%error, "this machine does not let a process adopt orphans; a killed reaper may leave some");
        }
        before
    });
    // It must be known before anybody can take it for a stray.
    let mut reapers = reapers();
    let child = command.spawn()?;
    reapers.extend(child.id());
    Ok(child)
}

/// A reaper has ended, and was taken in.
pub fn forget(reaper: Option<u32>) {
    if let Some(reaper) = reaper {
        reapers().remove(&reaper);
    }
}

/// Ends all strays, and whatever else carries the mark of a run; how many processes that were. On this thread: there may
/// be so many strays that no other can be started.
pub async fn end(mark: &str) -> usize {
    let started = Instant::now();
    let (mut ended, mut empty) = (HashSet::new(), 0);
    // One look may miss a process whose parent ends at that moment.
    while empty < LOOKS && started.elapsed() < GIVE_UP {
        let found = strike(|| left(mark));
        empty = if found.is_empty() { empty + 1 } else { 0 };
        ended.extend(found);
        tokio::time::sleep(LOOK).await;
    }
    ended.len()
}

/// The living; the dead are taken in on the way.
fn left(mark: &str) -> Vec<Process> {
    let mut left = tree::marked(MARK, |found| found == mark);
    // Not asked of getsid: 0 is an answer it does not expect, and it is right where the session was begun outside of
    // this container.
    let Some(own) = tree::session(std::process::id()) else { return left };
    let is_before = |process: &Process| BEFORE.get().is_some_and(|before| before.contains(process));
    let strays = {
        let reapers = reapers();
        let mut children = tree::children(std::process::id());
        children.retain(|child| child.session != own);
        children.retain(|child| !reapers.contains(&child.process.pid) && !is_before(&child.process));
        children
    };
    for stray in strays {
        if stray.is_dead {
            take_in(stray.process);
            continue;
        }
        left.extend(tree::below(stray.process.pid));
        left.push(stray.process);
    }
    left
}

fn take_in(dead: Process) {
    if let Some(pid) = i32::try_from(dead.pid).ok().and_then(Pid::from_raw) {
        let _ = waitpid(Some(pid), WaitOptions::NOHANG);
    }
}
