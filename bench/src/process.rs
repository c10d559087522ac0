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

/// The share of the machine in use while nothing is measured, in percent, over one second.
pub async fn busy_percent() -> Result<f64> {
    let before = idle_and_all()?;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let after = idle_and_all()?;
    Ok(100.0 - 100.0 * (after.0 - before.0) / (after.1 - before.1).max(1.0))
}

fn idle_and_all() -> Result<(f64, f64)> {
    let stat = fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?;
    let line = stat.lines().next().unwrap_or_default();
    let fields: Vec<f64> = line.split_whitespace().skip(1).take(8).filter_map(|field| field.parse().ok()).collect();
    Ok((fields.iter().skip(3).take(2).sum(), fields.iter().sum()))
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
    fn a_process_has_memory() {
        assert!(resident_bytes(std::process::id()).unwrap() > 100_000.0);
        assert!(cpu_seconds(std::process::id()).unwrap() >= 0.0);
    }
}
