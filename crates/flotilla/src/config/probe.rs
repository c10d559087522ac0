//! What stands in the configuration of an agent about probe turns, which cost what turns cost (`probe`).

use super::Span;
use anyhow::{Result, bail};
use flotilla_worker::probe::trial::Terms;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A turn now and then that shows whether the agent really works; see docs/probes.md. It is paid for like any other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProbeConfig {
    /// How often, at least a minute apart.
    pub every: Span,
    /// What the agent is told.
    #[serde(default = "prompt")]
    pub prompt: String,
    /// A turn that takes longer has failed.
    #[serde(default = "two_minutes")]
    pub timeout: Span,
    /// The most of them in 24 hours.
    #[serde(default = "hourly")]
    pub turns_per_day: u32,
    /// No more of them in 24 hours once they cost so much, in US dollars, as far as the agent tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_per_day: Option<f64>,
}

fn prompt() -> String {
    "This is a check of whether you can work. Use no tools, and answer with one word: ready".into()
}

fn two_minutes() -> Span {
    Span::seconds(120)
}

fn hourly() -> u32 {
    24
}

impl ProbeConfig {
    pub(super) fn check(&self) -> Result<()> {
        if self.every < Span::seconds(60) {
            bail!("probe.every: each probe turn costs what a turn costs; write 1m or more, such as 6h");
        }
        if self.prompt.trim().is_empty() || self.timeout == Span::seconds(0) || self.turns_per_day == 0 {
            bail!(
                "probe: prompt, timeout and turns_per_day must be more than nothing; leave 'probe' out to turn it off"
            );
        }
        if self.usd_per_day.is_some_and(|most| most.is_nan() || most <= 0.0) {
            bail!("probe.usd_per_day: must be more than nothing; leave 'probe' out to turn it off");
        }
        Ok(())
    }

    pub(super) fn terms(&self) -> Terms {
        Terms {
            every: self.every.0,
            prompt: self.prompt.clone(),
            timeout: self.timeout.0,
            turns_per_day: self.turns_per_day,
            usd_per_day: self.usd_per_day,
        }
    }
}
