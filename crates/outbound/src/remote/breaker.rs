//! The breaker of an agent elsewhere: after several calls in a row that did not reach it, it is left alone for a while.

use super::options::BreakerRules;
use flotilla_core::ports::Breaker;
use flotilla_core::registry::PATIENCE;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

pub struct Switch {
    agent: String,
    rules: BreakerRules,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    failures: u32,
    problem: Option<String>,
    /// Until when no call is let through.
    open_until: Option<Instant>,
    /// One call is on its way to see whether the agent is back.
    trying: bool,
    /// Checks in a row that did not reach it.
    checks: u32,
}

/// A call that may be made. Whoever drops it without a word frees the place for the next try.
pub struct Admitted<'a> {
    switch: &'a Switch,
    told: bool,
}

/// A call that is not made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftAlone {
    pub failures: u32,
    pub problem: String,
    pub wait: Duration,
}

impl Switch {
    pub fn new(agent: &str, rules: BreakerRules) -> Self {
        Self { agent: agent.to_owned(), rules, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while holding a breaker")
    }

    pub fn admit(&self) -> Result<Admitted<'_>, LeftAlone> {
        self.admit_at(Instant::now())
    }

    fn admit_at(&self, now: Instant) -> Result<Admitted<'_>, LeftAlone> {
        let mut state = self.state();
        if let Some(until) = state.open_until {
            if now < until || state.trying {
                let problem = state.problem.clone().unwrap_or_default();
                return Err(LeftAlone {
                    failures: state.failures,
                    problem,
                    wait: until.saturating_duration_since(now),
                });
            }
            state.trying = true;
        }
        Ok(Admitted { switch: self, told: false })
    }

    /// A check came to this. One that reached the agent closes the breaker; several in a row that did not open it, so
    /// that callers are told at once. Calls are not counted here: one that failed counts for itself.
    pub fn checked(&self, problem: Option<&str>) {
        let now = Instant::now();
        let Some(problem) = problem else {
            return Admitted { switch: self, told: false }.reached();
        };
        let mut state = self.state();
        state.checks += 1;
        if state.checks >= PATIENCE {
            if state.open_until.is_none() {
                tracing::warn!(agent = %self.agent, checks = state.checks, problem, "the agent is left alone for a while");
            }
            state.failures = state.failures.max(state.checks);
            state.problem = Some(problem.to_owned());
            state.open_until = state.open_until.max(Some(now + self.rules.pause));
        }
    }

    /// Its state, the failures in a row, and the last problem.
    pub fn look(&self) -> (Breaker, u32, Option<String>) {
        let state = self.state();
        let breaker = match state.open_until {
            None => Breaker::Closed,
            Some(until) if state.trying || until <= Instant::now() => Breaker::HalfOpen,
            Some(_) => Breaker::Open,
        };
        (breaker, state.failures, state.problem.clone())
    }
}

impl Admitted<'_> {
    /// The agent answered, whatever it said.
    pub fn reached(mut self) {
        self.told = true;
        let mut state = self.switch.state();
        if state.failures > 0 || state.checks > 0 || state.open_until.is_some() {
            if state.open_until.is_some() {
                tracing::info!(agent = %self.switch.agent, "the agent answers again");
            }
            *state = State::default();
        }
    }

    pub fn failed(self, problem: &str) {
        self.failed_at(problem, Instant::now());
    }

    fn failed_at(mut self, problem: &str, now: Instant) {
        self.told = true;
        let switch = self.switch;
        let mut state = switch.state();
        state.failures += 1;
        state.problem = Some(problem.to_owned());
        if state.trying || state.failures >= switch.rules.failures {
            if state.open_until.is_none() {
                tracing::warn!(agent = %switch.agent, failures = state.failures, problem, "the agent is left alone for a while");
            }
            state.open_until = Some(now + switch.rules.pause);
            state.trying = false;
        }
    }
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        if !self.told {
            self.switch.state().trying = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BreakerRules, Switch};
    use flotilla_core::ports::Breaker;
    use std::time::{Duration, Instant};

    #[test]
    fn it_opens_after_failures_in_a_row_and_tries_one_call() {
        let pause = Duration::from_secs(15);
        let switch = Switch::new("a", BreakerRules { failures: 2, pause });
        let now = Instant::now();
        switch.admit_at(now).ok().unwrap().failed_at("down", now);
        switch.admit_at(now).ok().unwrap().reached();
        switch.admit_at(now).ok().unwrap().failed_at("down", now);
        assert_eq!(switch.look().0, Breaker::Closed, "a call that got through starts the count again");
        switch.admit_at(now).ok().unwrap().failed_at("down", now);
        assert_eq!(switch.look().0, Breaker::Open);
        let left = switch.admit_at(now).err().unwrap();
        assert_eq!((left.failures, left.problem.as_str(), left.wait), (2, "down", pause));
        let later = now + pause;
        let tried = switch.admit_at(later).ok().unwrap();
        assert!(switch.admit_at(later).is_err(), "one at a time");
        drop(tried);
        switch.admit_at(later).ok().unwrap().failed_at("still down", later);
        assert!(switch.admit_at(later).is_err());
        switch.admit_at(later + pause).ok().unwrap().reached();
        assert_eq!(switch.look(), (Breaker::Closed, 0, None));
    }

    #[test]
    fn checks_open_it_when_several_failed_and_close_it_when_one_did_not() {
        let switch = Switch::new("a", BreakerRules { failures: 5, pause: Duration::from_secs(15) });
        switch.checked(Some("down"));
        switch.checked(Some("down"));
        assert_eq!(switch.look(), (Breaker::Closed, 0, None));
        switch.checked(Some("still down"));
        assert_eq!(switch.look(), (Breaker::Open, 3, Some("still down".into())));
        switch.checked(None);
        assert_eq!(switch.look(), (Breaker::Closed, 0, None));
        switch.checked(Some("down"));
        switch.admit().ok().unwrap().reached();
        switch.checked(Some("down"));
        switch.checked(Some("down"));
        assert_eq!(switch.look().0, Breaker::Closed, "a call that got through counts too");
    }
}
