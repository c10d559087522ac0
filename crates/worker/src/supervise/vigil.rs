//! What is seen to while a program runs, whoever else looks: that it uses no more than it may, and that nothing of it is
//! left when its end is told, also if its reaper was killed or halted.

use super::{Excess, Exit, Limits, Meter, PATIENCE, say, strays};
use crate::reaper::{Order, tree};
use rustix::process::Signal;
use std::fs::File;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::Weak;
use std::time::Duration;
use tokio::process::Child;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// When it is first looked what a run uses, and how often then.
const FIRST_LOOK: Duration = Duration::from_millis(100);
const LOOK: Duration = Duration::from_secs(1);

pub struct Vigil {
    pub mark: String,
    pub limits: Limits,
    pub meter: Meter,
}

impl Vigil {
    /// Until nothing of the run is left; then its end is told.
    pub async fn keep(self, mut reaper: Child, pipe: Weak<File>, tell: watch::Sender<Option<Exit>>) {
        let pid = reaper.id();
        let mut looks = interval_at(Instant::now() + FIRST_LOOK, LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut excess, mut told_at) = (None, None);
        let status = loop {
            tokio::select! {
                status = reaper.wait() => break status,
                _ = looks.tick() => {
                    if pid.is_some_and(tree::is_stopped) {
                        // It hears no order, and keeps no time: what it watches over could go on for ever.
                        let _ = reaper.start_kill();
                    } else if told_at.is_some_and(|at: Instant| at.elapsed() > PATIENCE) {
                        // A run may have kept it from what it was told.
                        let _ = reaper.start_kill();
                    } else if excess.is_none() {
                        excess = self.meter.look().excess(self.limits);
                        if let (Some(_), Some(pipe)) = (excess, pipe.upgrade()) {
                            say(&pipe, Order::Kill);
                            told_at = Some(Instant::now());
                        }
                    }
                }
            }
        };
        strays::forget(pid);
        let exit = match status {
            Ok(status) => exit(status),
            Err(_) => Exit::Unknown,
        };
        let excess = excess.or_else(|| self.limits.reached(exit));
        if exit == Exit::Unknown {
            self.end_strays().await;
        }
        tell.send_replace(Some(excess.map_or(exit, Exit::TooMuch)));
    }

    async fn end_strays(self) {
        let ended = strays::end(&self.mark).await;
        tracing::warn!(
            run = self.mark,
            ended,
            "a reaper was killed or halted from outside; what it watched over was ended"
        );
    }
}

impl Limits {
    /// The limit that the kernel ended a program for.
    fn reached(self, exit: Exit) -> Option<Excess> {
        let is_time = exit == Exit::Signal(Signal::XCPU.as_raw() as u8);
        self.processor.filter(|_| is_time).map(Excess::Processor)
    }
}

fn exit(status: ExitStatus) -> Exit {
    match status.code().and_then(|code| u8::try_from(code).ok()) {
        Some(127) => Exit::NotStarted,
        Some(code @ 129..=192) => Exit::Signal(code - 128),
        Some(code) => Exit::Code(code),
        None => {
            tracing::debug!(signal = ?status.signal(), "a reaper did not end by itself");
            Exit::Unknown
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Excess, Exit, Limits};
    use std::time::Duration;

    #[test]
    fn a_program_that_the_kernel_ends_for_its_time_used_too_much() {
        let processor = Some(Duration::from_secs(2));
        let limits = Limits { processor, ..Limits::default() };
        let excess = limits.reached(Exit::Signal(24)).expect("the limit");
        assert_eq!(excess, Excess::Processor(Duration::from_secs(2)));
        let told = Exit::TooMuch(excess).told();
        assert!(told.contains("more than 2 s of processor time (processor_time)"), "{told}");
        assert_eq!((limits.reached(Exit::Signal(9)), Limits::default().reached(Exit::Signal(24))), (None, None));
    }
}
