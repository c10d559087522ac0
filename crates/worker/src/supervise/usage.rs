//! What a run uses: memory and processor time of everything below its reaper, looked at now and then.

use super::{Limits, memory};
use crate::reaper::tree;
use flotilla_protocol::block::Block;
use flotilla_protocol::wire::Json;
use rustix::process::Signal;
use serde_json::json;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The most that was seen so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Used {
    /// In bytes, of all processes together.
    pub memory: u64,
    /// Of all processes, also those that have ended.
    pub processor: Duration,
    pub processes: usize,
    /// Of all processes; each has one at least.
    pub threads: u64,
}

/// What a run used that it may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excess {
    /// So many bytes.
    Memory(u64),
    Processor(Duration),
    /// So many processes and threads.
    Processes(u64),
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(bytes) => write!(f, "{bytes} bytes of memory (memory_bytes)"),
            Self::Processor(time) => write!(f, "{} s of processor time (processor_time)", time.as_secs_f32()),
            Self::Processes(count) => write!(f, "{count} processes and threads (processes)"),
        }
    }
}

/// What a run uses, for all who want to know.
#[derive(Debug, Clone)]
pub struct Meter {
    reaper: Option<u32>,
    used: Arc<Mutex<Used>>,
}

impl Meter {
    pub(super) fn new(reaper: Option<u32>) -> Self {
        Self { reaper, used: Arc::default() }
    }

    /// Looks now, if the run is still there.
    pub fn look(&self) -> Used {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reaper) = self.reaper {
            used.look(reaper);
        }
        *used
    }

    /// Ends the reaper, if it is still there.
    pub(super) fn end_reaper(&self) {
        if let Some(reaper) = self.reaper.and_then(tree::find) {
            reaper.signal(Signal::KILL);
        }
    }

    /// The most that was seen so far.
    pub fn used(&self) -> Used {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Used {
    /// What is more than it may be: the kernel's limits are for each process alone.
    pub fn excess(&self, limits: Limits) -> Option<Excess> {
        let memory = || limits.memory.filter(|most| self.memory > *most).map(Excess::Memory);
        let processor = || limits.processor.filter(|most| self.processor > *most).map(Excess::Processor);
        let processes = || limits.processes.filter(|most| self.threads > *most).map(Excess::Processes);
        memory().or_else(processor).or_else(processes)
    }

    /// For the owner's log; nothing if it was never looked at.
    pub fn block(&self) -> Option<Block> {
        if self.processes == 0 {
            return None;
        }
        let told = json!({
            "type": "resources", "peak_memory_bytes": self.memory, "processor_seconds": self.processor.as_secs_f64(),
            "processes": self.processes,
        });
        Block::new(Json::of(&told).ok()?).ok()
    }

    /// Looks at everything below a process. What is not there any more changes nothing.
    pub fn look(&mut self, root: u32) {
        let Some(reaper) = Stat::of(root) else { return };
        let below = descendants(root);
        let stats: Vec<Stat> = below.iter().filter_map(|pid| Stat::of(*pid)).collect();
        let ticks = stats.iter().map(|stat| stat.own + stat.ended).sum::<u64>() + reaper.ended;
        let rate = rustix::param::clock_ticks_per_second().max(1);
        self.memory = memory::peak(&below, self.memory);
        self.processor = self.processor.max(Duration::from_millis(ticks * 1000 / rate));
        self.processes = self.processes.max(stats.len());
        self.threads = self.threads.max(stats.iter().map(|stat| stat.threads).sum());
    }
}

/// A line of the kernel about a process.
struct Stat {
    /// Ticks of its own, and of children it has taken in.
    own: u64,
    ended: u64,
    threads: u64,
}

impl Stat {
    fn of(pid: u32) -> Option<Self> {
        // The name stands in brackets and may hold anything: brackets, and bytes that are no text.
        let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        let text = String::from_utf8_lossy(&text);
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
        Some(Self { own: number(11) + number(12), ended: number(13) + number(14), threads: number(17) })
    }
}

/// All living processes below one.
fn descendants(root: u32) -> Vec<u32> {
    let (mut found, mut parents) = (Vec::new(), vec![root]);
    while let Some(parent) = parents.pop() {
        let Some(children) = tree::numbers_below(parent) else {
            return tree::below(root).iter().map(|process| process.pid).collect();
        };
        parents.extend(&children);
        found.extend(children);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::Used;
    use std::io::Read as _;
    use std::process::{Command, Stdio};

    #[test]
    fn memory_and_time_of_children_are_seen() {
        let script = "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; echo done; read wait";
        let mut child =
            Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0; 4]).unwrap();
        let mut used = Used::default();
        used.look(std::process::id());
        assert!(used.memory > 0 && used.processes >= 1 && !used.processor.is_zero(), "{used:?}");
        drop(child.stdin.take());
        child.wait().unwrap();
        let before = used;
        used.look(u32::MAX);
        assert_eq!(used, before, "nobody is there");
    }
}
