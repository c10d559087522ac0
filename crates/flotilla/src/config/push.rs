//! The `push` and `targets` sections: when webhooks are tried again, and where they may go.

use super::Span;
use anyhow::{Result, bail};
use flotilla_core::push::Schedule;
use flotilla_outbound::guard::Rules;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Webhooks that tell of a task's progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PushSettings {
    /// The delays between attempts. The first attempt is made at once; after the last the webhook is parked.
    pub schedule: Vec<Span>,
    /// How long a receiver may take to answer.
    pub timeout: Span,
}

impl Default for PushSettings {
    fn default() -> Self {
        let schedule = Schedule::default().0.into_iter().map(Span).collect();
        Self { schedule, timeout: Span::seconds(15) }
    }
}

impl PushSettings {
    pub fn schedule(&self) -> Schedule {
        Schedule(self.schedule.iter().map(|span| span.0).collect())
    }

    pub fn check(&self) -> Result<()> {
        let (longest, most) = (Span::seconds(7 * 86_400), 50);
        if self.schedule.len() > most || self.schedule.iter().any(|span| span.0 > longest.0) {
            bail!("push.schedule: at most {most} delays, each at most {longest}");
        }
        if !(Duration::from_millis(100)..=Duration::from_secs(60)).contains(&self.timeout.0) {
            bail!("push.timeout must be between 100ms and 1m");
        }
        Ok(())
    }
}

/// Where URLs that come from callers may lead.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TargetsConfig {
    /// Ranges of addresses that may be called although they are not public, over http too.
    pub allow: Vec<String>,
    /// Lets public addresses be called over http.
    pub allow_http: bool,
}

impl TargetsConfig {
    pub fn rules(&self) -> Result<Rules> {
        let allow = self.allow.iter().map(|text| text.parse()).collect::<Result<_, String>>();
        let allow = allow.map_err(|problem| anyhow::anyhow!("targets.allow: {problem}"))?;
        Ok(Rules { allow, allow_http: self.allow_http })
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    #[test]
    fn schedules_and_ranges_are_read_and_slips_told() {
        let config = Config::parse("push: {schedule: [1s, 2m], timeout: 5s}\ntargets: {allow: [10.0.0.0/8]}").unwrap();
        assert_eq!(config.push.schedule().0.iter().map(|delay| delay.as_secs()).collect::<Vec<_>>(), [1, 120]);
        assert_eq!(config.targets.rules().unwrap().allow[0].to_string(), "10.0.0.0/8");
        assert_eq!(Config::default().push.schedule.len(), 9);
        for (text, told) in [
            ("push: {timeout: 0s}", "push.timeout must be between"),
            ("push: {schedule: [8d]}", "push.schedule: at most"),
            ("targets: {allow: [home]}", "targets.allow: 'home' is no range"),
        ] {
            let problem = Config::parse(text).unwrap().check().unwrap_err().to_string();
            assert!(problem.contains(told), "{problem}");
        }
    }
}
