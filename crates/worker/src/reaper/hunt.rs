//! Ending many processes that go on starting others: all are halted first, and ended when nobody is left to start one.

use super::tree::{self, Process};
use rustix::process::Signal;
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// How long it is looked for processes that are not halted yet.
const FREEZING: Duration = Duration::from_secs(2);

/// Halts what `look` finds until it finds nobody new, and ends all of it: so no process is left that could take the place
/// of one that ends. Who that was.
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

/// The same for everything below this process.
pub fn strike_below() -> HashSet<Process> {
    let own = std::process::id();
    let Some(own_group) = tree::group(own) else { return strike(|| tree::below(own)) };
    // Hundreds that are busy leave this process little time to look at each: most of them are in a few groups, each of
    // which is halted at one stroke.
    let mut halted = HashSet::from([own_group]);
    for child in tree::numbers_below(own).unwrap_or_default() {
        if let Some((process, group)) = tree::find(child).zip(tree::group(child))
            && halted.insert(group)
        {
            process.signal_group(own_group, Signal::STOP);
        }
    }
    strike(|| tree::below(own))
}
