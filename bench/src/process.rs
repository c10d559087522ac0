//! What /proc tells about a process and its children: processor time and memory.

use std::fs;

use anyhow::{Context, Result};

/// Linux counts processor time in hundredths of a second.
const TICKS_PER_SECOND: f64 = 100.0;

/// User and system time that a process and its children have used.
pub fn cpu_seconds(pid: u32) -> Result<f64> {
    let mut ticks = 0.0;
    for pid in family(pid) {
        let path = format!("/proc/{pid}/stat");
        let stat = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        ticks += stat_ticks(&stat);
    }
    Ok(ticks / TICKS_PER_SECOND)
}

/// Fields 14 to 17: user and system time, its own and that of children that have ended.
fn stat_ticks(stat: &str) -> f64 {
    // The name, in parentheses, may hold spaces: count the fields after it.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    fields.split_whitespace().skip(11).take(4).filter_map(|field| field.parse::<f64>().ok()).sum()
}

/// Resident memory of a process and its children, in bytes.
pub fn resident_bytes(pid: u32) -> Result<f64> {
    let mut kibibytes = 0.0;
    for pid in family(pid) {
        let path = format!("/proc/{pid}/status");
        let status = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().next()).and_then(|number| number.parse::<f64>().ok());
        kibibytes += number.with_context(|| format!("no VmRSS in {path}"))?;
    }
    Ok(kibibytes * 1024.0)
}

/// A process and all below it.
fn family(pid: u32) -> Vec<u32> {
    let mut all = vec![pid];
    let mut at = 0;
    while let Some(pid) = all.get(at) {
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        all.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
        at += 1;
    }
    all
}

/// What the whole machine has done so far, to tell later what others took of it.
pub struct Machine {
    busy: f64,
    all: f64,
    ours: f64,
}

impl Machine {
    pub fn now() -> Result<Machine> {
        let stat = fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?;
        let line = stat.lines().next().unwrap_or_default();
        let ticks: Vec<f64> = line.split_whitespace().skip(1).take(8).filter_map(|field| field.parse().ok()).collect();
        // The fourth and fifth count idleness.
        let (all, idle): (f64, f64) = (ticks.iter().sum(), ticks.iter().skip(3).take(2).sum());
        Ok(Machine { busy: all - idle, all, ours: cpu_seconds(std::process::id())? * TICKS_PER_SECOND })
    }

    /// The share of the machine that went to other programs than this one and its servers, in percent.
    pub fn others_since(&self, earlier: &Machine) -> f64 {
        let others = (self.busy - earlier.busy) - (self.ours - earlier.ours);
        100.0 * (others / (self.all - earlier.all).max(1.0)).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_line_whose_name_holds_spaces() {
        let stat = "42 (a b) c) S 1 42 42 0 -1 4194560 100 0 0 0 7 5 3 2 20 0 1 0 12345";
        assert_eq!(stat_ticks(stat), 17.0);
    }

    #[test]
    fn what_others_took() {
        let earlier = Machine { busy: 100.0, all: 1000.0, ours: 50.0 };
        let later = Machine { busy: 400.0, all: 2000.0, ours: 250.0 };
        assert_eq!(later.others_since(&earlier), 10.0);
    }

    #[test]
    fn a_process_has_memory() {
        assert!(resident_bytes(std::process::id()).unwrap() > 100_000.0);
        assert!(cpu_seconds(std::process::id()).unwrap() >= 0.0);
    }
}
