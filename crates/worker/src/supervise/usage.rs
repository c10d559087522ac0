//! What a run uses: memory and processor time of everything below its reaper, looked at now and then.

use crate::reaper::tree;
use std::time::Duration;

/// The most that was seen so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Used {
    /// In bytes, of all processes together.
    pub memory: u64,
    /// Of all processes, also those that have ended.
    pub processor: Duration,
    pub processes: usize,
}

impl Used {
    /// Looks at a run, if it is still there.
    pub fn look_below(&mut self, reaper: Option<u32>) {
        if let Some(reaper) = reaper {
            self.look(reaper);
        }
    }

    /// Looks at everything below a process. What is not there any more changes nothing.
    pub fn look(&mut self, root: u32) {
        let Some(reaper) = Stat::of(root) else { return };
        let below = descendants(root);
        let stats: Vec<Stat> = below.iter().filter_map(|pid| Stat::of(*pid)).collect();
        let page = rustix::param::page_size() as u64;
        let memory = stats.iter().map(|stat| stat.resident).sum::<u64>() * page;
        let ticks = stats.iter().map(|stat| stat.own + stat.ended).sum::<u64>() + reaper.ended;
        let rate = rustix::param::clock_ticks_per_second().max(1);
        self.memory = self.memory.max(memory);
        self.processor = self.processor.max(Duration::from_millis(ticks * 1000 / rate));
        self.processes = self.processes.max(stats.len());
    }
}

/// A line of the kernel about a process.
struct Stat {
    /// Ticks of its own, and of children it has taken in.
    own: u64,
    ended: u64,
    /// In pages.
    resident: u64,
}

impl Stat {
    fn of(pid: u32) -> Option<Self> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name stands in brackets and may hold anything, brackets too.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
        Some(Self { own: number(11) + number(12), ended: number(13) + number(14), resident: number(21) })
    }
}

/// Asks the kernel for the children of each, which costs less than to look at all processes of the machine. A kernel
/// that does not tell is looked at whole.
fn descendants(root: u32) -> Vec<u32> {
    if !std::path::Path::new("/proc/thread-self/children").exists() {
        return tree::below(root).iter().map(|process| process.pid).collect();
    }
    let (mut found, mut parents) = (Vec::new(), vec![root]);
    while let Some(parent) = parents.pop() {
        let threads = std::fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
        for thread in threads {
            let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            parents.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
        if parent != root {
            found.push(parent);
        }
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
