//! Kills many processes that go on starting others: halts all of them first.

use super::tree::{self, Process};
use rustix::process::Signal;
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// How long `strike` looks for processes that are not halted yet.
const FREEZING: Duration = Duration::from_secs(2);

/// Halts the processes that `look` finds until it finds no new one, then kills all of them: a halted process cannot start
/// another in the place of a killed one. Returns the killed processes.
pub fn strike(look: impl Fn() -> Vec<Process>) -> HashSet<Process> {
    let (begun, mut halted) = (Instant::now(), HashSet::new());
    loop {
        let new: Vec<Process> = look().into_iter().filter(|process| halted.insert(*process)).collect();
        new.iter().for_each(|process| process.signal(Signal::STOP));
        if new.is_empty() || begun.elapsed() >= FREEZING {
            break;
        }
    }
    halted.iter().for_each(|process| process.signal(Signal::KILL));
    halted
}

/// Halts and kills every process below this one.
pub fn strike_below() -> HashSet<Process> {
    strike(|| tree::below(std::process::id()))
}
