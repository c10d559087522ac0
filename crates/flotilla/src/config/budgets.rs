//! The `budgets` section: ceilings on what agents may use in a day.

use anyhow::{Result, bail};
use flotilla_core::budget::{Budgets, Ceiling};
use flotilla_core::fleet::FLEET;
use flotilla_protocol::usage::nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What agents may use in a day (UTC); see docs/usage.md.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BudgetsConfig {
    /// All agents together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day: Option<CeilingConfig>,
    /// One agent, by name.
    pub agents: BTreeMap<String, CeilingConfig>,
    /// The agents of one workspace, by name.
    pub workspaces: BTreeMap<String, CeilingConfig>,
}

/// The most that may be used in a day. The owner is told at 50, 80 and 100 per cent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CeilingConfig {
    /// Input, output and cache-write tokens together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Whether work is stopped there, and no more begun until the next day.
    #[serde(default = "yes")]
    pub hard: bool,
}

fn yes() -> bool {
    true
}

impl CeilingConfig {
    fn ceiling(&self) -> Ceiling {
        Ceiling { tokens: self.tokens, output: None, cost: self.cost_usd.map(nanos), hard: self.hard }
    }

    fn check(&self, place: &str) -> Result<()> {
        if self.tokens.is_none() && self.cost_usd.is_none() {
            bail!("{place} needs tokens or cost_usd");
        }
        if self.tokens == Some(0) || self.cost_usd.is_some_and(|cost| !cost.is_finite() || cost <= 0.0) {
            bail!("{place}: a ceiling must be more than 0; leave it out for none");
        }
        Ok(())
    }
}

impl BudgetsConfig {
    pub fn budgets(&self) -> Budgets {
        let all = |map: &BTreeMap<String, CeilingConfig>| {
            map.iter().map(|(name, ceiling)| (name.clone(), ceiling.ceiling())).collect()
        };
        let day = self.day.as_ref().map(CeilingConfig::ceiling);
        Budgets { day, agents: all(&self.agents), workspaces: all(&self.workspaces) }
    }

    pub fn check(&self) -> Result<()> {
        self.day.iter().try_for_each(|ceiling| ceiling.check("budgets.day"))?;
        for (kind, map) in [("agents", &self.agents), ("workspaces", &self.workspaces)] {
            for (name, ceiling) in map {
                ceiling.check(&format!("budgets.{kind}.{name}"))?;
                // Nothing is ever booked on it.
                if kind == "agents" && name == FLEET {
                    bail!(
                        "budgets.agents.{FLEET}: work of the fleet counts for the workers that do it; name these, or \
                         use budgets.day"
                    );
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    #[test]
    fn ceilings_are_read_and_slips_are_told() {
        let read = |text: &str| Config::parse(text).expect("readable").budgets;
        let some = read("budgets: {day: {cost_usd: 2.5}, agents: {a: {tokens: 10, hard: false}}}");
        assert!(some.check().is_ok());
        let budgets = some.budgets();
        assert_eq!(budgets.day.map(|day| (day.cost, day.hard)), Some((Some(2_500_000_000), true)));
        assert_eq!((budgets.agents[0].0.as_str(), budgets.agents[0].1.hard), ("a", false));
        for (wrong, told) in [
            ("budgets: {day: {hard: true}}", "needs tokens or cost_usd"),
            ("budgets: {agents: {a: {tokens: 0}}}", "budgets.agents.a"),
            ("budgets: {workspaces: {w: {cost_usd: -1}}}", "more than 0"),
            ("budgets: {agents: {fleet: {tokens: 10}}}", "the workers that do it"),
        ] {
            let problem = read(wrong).check().expect_err(wrong).to_string();
            assert!(problem.contains(told), "{problem}");
        }
    }
}
