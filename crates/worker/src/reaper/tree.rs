//! The processes below one, read from /proc.

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};
use std::collections::HashMap;
use std::path::Path;

/// A process that cannot be mistaken for a later one with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Process {
    pub pid: u32,
    /// When it started, in the kernel's ticks.
    pub start: u64,
}

struct Entry {
    process: Process,
    parent: u32,
    session: u32,
    zombie: bool,
    stopped: bool,
}

/// A child of some process, dead ones that nobody has taken in among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Child {
    pub process: Process,
    pub session: u32,
    pub is_dead: bool,
}

impl Process {
    /// Sends a signal, if it is still the same process.
    pub fn signal(&self, signal: Signal) {
        let Some(pid) = raw(self.pid) else { return };
        let is_same = || entry(self.pid).is_some_and(|now| now.process == *self);
        // Held from here on, the number cannot go to another.
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(held) if is_same() => drop(pidfd_send_signal(held, signal)),
            Ok(_) | Err(Errno::SRCH) => {}
            // No descriptor is free, or the kernel has no such call: no number goes round in so short a time.
            Err(_) if is_same() => drop(kill_process(pid, signal)),
            Err(_) => {}
        }
    }

    /// Whether it was started as a reaper.
    pub fn is_reaper(&self) -> bool {
        let line = std::fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        line.split(|byte| *byte == 0).nth(1) == Some(b"reap")
    }
}

/// A process by its number, if it lives.
pub fn find(pid: u32) -> Option<Process> {
    entry(pid).filter(|entry| !entry.zombie).map(|entry| entry.process)
}

/// The session a process is in; 0 for one that was begun outside of this container.
pub fn session(pid: u32) -> Option<u32> {
    entry(pid).map(|entry| entry.session)
}

/// Whether a process is halted, by a signal or by somebody who traces it.
pub fn is_stopped(pid: u32) -> bool {
    entry(pid).is_some_and(|entry| entry.stopped)
}

/// The children of a process by their numbers, dead or alive. The kernel is asked for them, which costs less than to look
/// at all processes of the machine; none if it does not tell.
pub fn numbers_below(parent: u32) -> Option<Vec<u32>> {
    let mut found = Vec::new();
    for thread in std::fs::read_dir(format!("/proc/{parent}/task")).ok()?.flatten() {
        match std::fs::read_to_string(thread.path().join("children")) {
            Ok(children) => found.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok())),
            // A thread that has ended has none; a kernel that does not tell has no such file anywhere.
            Err(_) if Path::new("/proc/thread-self/children").exists() => {}
            Err(_) => return None,
        }
    }
    Some(found)
}

/// The direct children of a process, dead or alive.
pub fn children(parent: u32) -> Vec<Child> {
    let child = |entry: Entry| Child { process: entry.process, session: entry.session, is_dead: entry.zombie };
    numbers().filter_map(entry).filter(|entry| entry.parent == parent).map(child).collect()
}

/// All living processes below one, in no order. The dead that nobody has taken in are not among them.
pub fn below(root: u32) -> Vec<Process> {
    let entries: Vec<Entry> = numbers().filter_map(entry).collect();
    let mut children: HashMap<u32, Vec<&Entry>> = HashMap::new();
    for entry in &entries {
        children.entry(entry.parent).or_default().push(entry);
    }
    let (mut found, mut parents) = (Vec::new(), vec![root]);
    while let Some(parent) = parents.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            parents.push(child.process.pid);
            if !child.zombie {
                found.push(child.process);
            }
        }
    }
    found
}

/// All processes whose environment holds `NAME=VALUE` where the value satisfies a test.
pub fn marked(name: &str, is_meant: impl Fn(&str) -> bool) -> Vec<Process> {
    let marker = format!("{name}=");
    let carries = |pid: &u32| {
        let Ok(environment) = std::fs::read(format!("/proc/{pid}/environ")) else { return false };
        let mut variables = environment.split(|byte| *byte == 0);
        variables.any(|variable| {
            std::str::from_utf8(variable).ok().and_then(|text| text.strip_prefix(&marker)).is_some_and(&is_meant)
        })
    };
    let living = numbers().filter(carries).filter_map(entry).filter(|entry| !entry.zombie);
    living.map(|entry| entry.process).collect()
}

fn raw(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

fn numbers() -> impl Iterator<Item = u32> {
    let folder = std::fs::read_dir(Path::new("/proc")).into_iter().flatten().flatten();
    folder.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn entry(pid: u32) -> Option<Entry> {
    // The name stands in brackets and may hold anything: brackets, and bytes that are no text.
    let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let session = fields.nth(1)?.parse().ok()?;
    let threads: u64 = fields.nth(13)?.parse().ok()?;
    let start = fields.nth(1)?.parse().ok()?;
    // Where the first thread alone has ended, the others go on.
    let (zombie, stopped) = (matches!(state, "Z" | "X") && threads <= 1, matches!(state, "T" | "t"));
    Some(Entry { process: Process { pid, start }, parent, session, zombie, stopped })
}

#[cfg(test)]
mod tests {
    use super::{below, children, entry, numbers_below, session};

    #[test]
    fn this_process_and_its_children_are_found() {
        let own = std::process::id();
        assert!(entry(own).is_some_and(|entry| !entry.zombie && entry.parent != 0));
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep");
        let found: Vec<u32> = below(own).iter().map(|process| process.pid).collect();
        assert!(found.contains(&child.id()), "{found:?}");
        let process = entry(child.id()).unwrap().process;
        let direct = children(own).into_iter().find(|known| known.process == process).expect("a child");
        assert_eq!((Some(direct.session), direct.is_dead), (session(own), false));
        assert!(numbers_below(own).is_none_or(|numbers| numbers.contains(&child.id())));
        process.signal(rustix::process::Signal::KILL);
        assert!(!child.wait().unwrap().success());
        assert!(!below(own).contains(&process));
    }
}
