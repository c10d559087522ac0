//! The `fleet` section: workers that announce themselves, and how work is given to them.

use super::Span;
use anyhow::{Result, bail};
use flotilla_core::dispatch::{Policy, Tiers};
use flotilla_core::fleet::{Settings, WorkerSettings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Workers and the work they are given; see docs/fleet.md.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FleetConfig {
    /// How long a worker counts as present after it was last heard of. A connected one always is.
    pub lease: Span,
    /// How long a worker may take to take up what it was given, before another gets it.
    pub take: Span,
    /// How long work waits for a worker, unless its deadline is sooner.
    pub wait: Span,
    /// Work that waited this long goes before later work that is one step more urgent.
    pub ageing: Span,
    /// How many workers may change files in one repository at once.
    #[schemars(range(min = 1, max = 1_000))]
    pub writers_per_repository: u32,
    /// Tiers of models, the least first.
    pub tiers: Vec<String>,
    /// What is known of workers beside what they announce, by the agent's name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub workers: BTreeMap<String, WorkerConfig>,
    /// Who is told of alerts: webhooks, signed as push is, and programs that get the alert on standard input.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notify: Vec<NotifyConfig>,
}

/// `webhook: URL`, or `command: [PROGRAM, ARGUMENT, …]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NotifyConfig {
    Webhook(String),
    Command(Vec<String>),
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WorkerConfig {
    /// Words to address a group of workers by, as `label:WORD`.
    pub labels: Vec<String>,
    /// Whose usage limit it works under. All workers of an account pause together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Reads texts to it for a dispatch (JSON or hints), also before it has announced itself.
    pub handshake: bool,
}

impl Default for FleetConfig {
    fn default() -> Self {
        let settings = Settings::default();
        Self {
            lease: Span(settings.lease),
            take: Span(settings.take),
            wait: Span(settings.wait),
            ageing: Span(settings.ageing),
            writers_per_repository: settings.writers_per_repository,
            tiers: ["haiku", "sonnet", "opus"].map(str::to_owned).to_vec(),
            workers: BTreeMap::new(),
            notify: Vec::new(),
        }
    }
}

impl FleetConfig {
    pub fn settings(&self) -> Settings {
        let workers = self.workers.iter().map(|(name, worker)| {
            let WorkerConfig { labels, account, handshake } = worker.clone();
            (name.clone(), WorkerSettings { labels, account, handshake })
        });
        Settings {
            lease: self.lease.0,
            take: self.take.0,
            wait: self.wait.0,
            ageing: self.ageing.0,
            writers_per_repository: self.writers_per_repository,
            policy: Policy { tiers: Tiers::new(self.tiers.iter().cloned()), ..Policy::default() },
            workers: workers.collect(),
        }
    }

    pub fn check(&self) -> Result<()> {
        for (name, span) in [("lease", self.lease), ("take", self.take), ("wait", self.wait), ("ageing", self.ageing)] {
            if span.0.as_millis() == 0 {
                bail!("fleet.{name}: must be longer than nothing");
            }
        }
        if self.writers_per_repository == 0 {
            bail!("fleet.writers_per_repository: must be at least 1, or nothing that changes files could be done");
        }
        for notifier in &self.notify {
            match notifier {
                NotifyConfig::Webhook(url) if !url.starts_with("http://") && !url.starts_with("https://") => {
                    bail!("fleet.notify: webhook: '{url}' must be an http or https URL");
                }
                NotifyConfig::Command(words) if words.first().is_none_or(|program| !program.starts_with('/')) => {
                    bail!("fleet.notify: command: must begin with the whole path of a program");
                }
                _ => {}
            }
        }
        if self.tiers.is_empty() {
            bail!("fleet.tiers: must name at least one tier, the least first");
        }
        Ok(())
    }
}
