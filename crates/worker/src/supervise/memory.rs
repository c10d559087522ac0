//! Memory in use by the processes of a run. What several of them share counts once, and what none of them has mapped counts
//! too: a file in memory (`memfd_create`, `/dev/shm`) that is only open, or a segment that nobody is attached to.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;

/// What the names of files in memory begin with, as the kernel shows them.
const IN_MEMORY: [&str; 4] = ["/memfd:", "/dev/shm/", "/SYSV", "/dev/zero"];
/// Segments of System V, of all processes.
const SEGMENTS: &str = "/proc/sysvipc/shm";

/// A file in memory.
#[derive(Default)]
struct Shared {
    /// As its file system tells, if somebody has it open.
    allocated: u64,
    /// What is mapped, each page once.
    mapped: u64,
}

/// Which file system, and which file of it.
type Name = (u64, u64);

/// The most that processes are known to have used, in bytes; `before` is what was known.
pub fn peak(processes: &[u32], before: u64) -> u64 {
    let each: Vec<(u32, Own)> = processes.iter().filter_map(|pid| Some((*pid, Own::of(*pid)?))).collect();
    let own: u64 = each.iter().map(|(_, own)| own.private).sum::<u64>() + unattached(processes);
    let mapped: u64 = each.iter().map(|(_, own)| own.shared).sum();
    let mut files: HashMap<Name, Shared> = HashMap::new();
    processes.iter().for_each(|pid| note_open(*pid, &mut files));
    let allocated: u64 = files.values().map(|file| file.allocated).sum();
    // RssShmem counts a shared page once for each process. Only if that sum is a new peak, count every mapping exactly.
    if own + mapped + allocated <= before || mapped == 0 {
        return before.max(own + allocated);
    }
    for (pid, _) in each.iter().filter(|(_, own)| own.shared > 0) {
        note_mapped(*pid, &mut files);
    }
    let shared: u64 = files.values().map(|file| file.allocated.max(file.mapped)).sum();
    before.max(own + shared)
}

/// What a process has, in bytes.
struct Own {
    private: u64,
    shared: u64,
}

impl Own {
    fn of(pid: u32) -> Option<Self> {
        let status = text(&format!("/proc/{pid}/status"))?;
        let kilobytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim_start_matches(':').trim().strip_suffix(" kB")?.parse::<u64>().ok()
        };
        let of = |name| kilobytes(name).unwrap_or(0) * 1024;
        Some(Self { private: of("RssAnon") + of("VmSwap"), shared: of("RssShmem") })
    }
}

/// Names in it may hold bytes that are no text.
fn text(file: &str) -> Option<String> {
    fs::read(file).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn note_open(pid: u32, files: &mut HashMap<Name, Shared>) {
    for open in fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten() {
        // The name is looked at first: to ask a file of a network for its size may take for ever.
        let is_in_memory = fs::read_link(open.path()).is_ok_and(|target| is_in_memory(&target.to_string_lossy()));
        let facts = is_in_memory.then(|| fs::metadata(open.path()).ok()).flatten();
        if let Some(facts) = facts.filter(fs::Metadata::is_file) {
            let file = files.entry((minor(facts.dev()), facts.ino())).or_default();
            file.allocated = facts.blocks() * 512;
        }
    }
}

/// Each process counts for its part of a page that several have mapped.
fn note_mapped(pid: u32, files: &mut HashMap<Name, Shared>) {
    let mut name = None;
    for line in text(&format!("/proc/{pid}/smaps")).unwrap_or_default().lines() {
        match line.split_once(':') {
            Some(("Pss", size)) => {
                let kilobytes = size.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0);
                if let Some(name) = name {
                    files.entry(name).or_default().mapped += kilobytes * 1024;
                }
            }
            Some((key, _)) if key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') => {}
            _ => name = named(line),
        }
    }
}

/// The file of a mapping, if it is in memory: addresses, rights, offset, device, inode, path.
fn named(line: &str) -> Option<Name> {
    let mut fields = line.split_whitespace();
    let (device, inode, path) = (fields.nth(3)?, fields.next()?, fields.next()?);
    let (_, minor) = device.split_once(':')?;
    is_in_memory(path).then_some((u64::from_str_radix(minor, 16).ok()?, inode.parse().ok()?))
}

fn is_in_memory(path: &str) -> bool {
    IN_MEMORY.iter().any(|beginning| path.starts_with(beginning))
}

/// File systems in memory have no major number.
fn minor(device: u64) -> u64 {
    (device & 0xff) | ((device >> 12) & !0xff)
}

/// Segments that processes made, or attached last, and nobody is attached to.
fn unattached(processes: &[u32]) -> u64 {
    let table = fs::read_to_string(SEGMENTS).unwrap_or_default();
    let mut segments = table
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().map(|field| field.parse::<u64>().unwrap_or(0)).collect::<Vec<u64>>());
    let known: HashSet<u64> = processes.iter().map(|pid| u64::from(*pid)).collect();
    let of = |segment: &Vec<u64>, index: usize| segment.get(index).copied().unwrap_or(0);
    let is_left =
        |segment: &Vec<u64>| of(segment, 6) == 0 && [4, 5].iter().any(|one| known.contains(&of(segment, *one)));
    // Resident, and swapped out.
    segments.by_ref().filter(is_left).map(|segment| of(&segment, 14) + of(&segment, 15)).sum()
}
