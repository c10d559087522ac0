//! The `registry` section: how agents are looked after, and what may be added while the hub runs.

use super::Span;
use anyhow::{Result, bail};
use flotilla_core::registry::Keeping;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The registry of agents; see docs/registry.md.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RegistryConfig {
    /// How often an agent elsewhere is looked at; `0s` only reads its card again when that is due.
    pub check_every: Span,
    /// Most agents that may be added over the API.
    pub most: usize,
    /// Most of them that one owner may have.
    pub most_per_owner: usize,
    /// Secrets that agents added over the API may name: `env:NAME`, `file:PATH`; a `*` at the end stands for more.
    pub references: Vec<String>,
}

impl Default for RegistryConfig {
    fn default() -> Self {
        let Keeping { check_every, most, most_per_owner, references } = Keeping::default();
        Self { check_every: Span(check_every), most, most_per_owner, references }
    }
}

impl RegistryConfig {
    pub fn keeping(&self) -> Keeping {
        Keeping {
            check_every: self.check_every.0,
            most: self.most,
            most_per_owner: self.most_per_owner,
            references: self.references.clone(),
        }
    }

    pub fn check(&self) -> Result<()> {
        let every = self.check_every.0;
        if !every.is_zero() && !(Duration::from_millis(100)..=Duration::from_secs(86_400)).contains(&every) {
            bail!("registry.check_every must be 0s, or between 100ms and 1d");
        }
        let is_place = |text: &String| {
            text.split_once(':').is_some_and(|(kind, place)| matches!(kind, "env" | "file") && !place.is_empty())
        };
        if let Some(wrong) = self.references.iter().find(|text| !is_place(text)) {
            bail!("registry.references: '{wrong}' is neither env:NAME nor file:PATH; a '*' may stand at the end");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    #[test]
    fn slips_are_told() {
        for (text, told) in [
            ("registry: {check_every: 1ms}", "registry.check_every must be"),
            ("registry: {references: ['*']}", "neither env:NAME nor file:PATH"),
            ("registry: {references: ['env:']}", "neither env:NAME nor file:PATH"),
        ] {
            let problem = Config::parse(text).unwrap().check().unwrap_err().to_string();
            assert!(problem.contains(told), "{problem}");
        }
        assert!(Config::parse("registry: {check_every: 0s, references: []}").unwrap().check().is_ok());
    }
}
