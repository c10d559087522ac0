//! A hub that announces its own agents: now and again while it runs, and a good-bye when it stops.

use super::Running;
use crate::announcer::{Announcer, Known};
use crate::config::AnnounceConfig;
use anyhow::{Context as _, Result};
use flotilla_core::registry::Visibility;
use std::sync::Arc;
use std::time::Duration;

/// How long saying good-bye may take.
const GOODBYE: Duration = Duration::from_secs(5);
/// The first pause after a failure; each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

fn announcer(config: &AnnounceConfig) -> Result<Announcer> {
    let to = config.to.as_deref().context("announce.to")?;
    let auth = config.auth.as_ref().map(serde_json::to_value).transpose()?;
    Announcer::new(to, config.key()?, config.prefix.clone(), auth)
}

/// The agents to be announced as they are now: those that are named, or all that are public.
fn agents(running: &Running, config: &AnnounceConfig) -> Vec<Known> {
    let (registry, public_url) = (running.app.hub.registry(), running.app.settings().public_url.clone());
    let wanted = registry.agents().filter(|agent| match config.agents.as_slice() {
        [] => agent.visibility == Visibility::Public,
        named => named.contains(&agent.name),
    });
    let card = |name: &str| format!("{public_url}/agents/{name}/.well-known/agent-card.json");
    wanted.map(|agent| Known { name: agent.name.clone(), card: card(&agent.name) }).collect()
}

/// Announces for as long as the hub runs. The configuration is looked at each time, as it may change.
pub async fn keep(running: Arc<Running>) {
    let mut pause = FIRST_PAUSE;
    let mut said = None;
    loop {
        let config = running.config.load_full();
        let Some(announce) = &config.announce else {
            tokio::time::sleep(FIRST_PAUSE).await;
            continue;
        };
        match once(&running, announce).await {
            Ok(told) => {
                if said.as_ref() != Some(&told) {
                    tracing::info!("{told}");
                }
                (said, pause) = (Some(told), FIRST_PAUSE);
                tokio::time::sleep(announce.every()).await;
            }
            Err(error) => {
                let told = format!("the agents could not be announced, which is tried again: {error:#}");
                if said.as_ref() != Some(&told) {
                    tracing::warn!("{told}");
                }
                said = Some(told);
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(announce.every());
            }
        }
    }
}

async fn once(running: &Running, config: &AnnounceConfig) -> Result<String> {
    let announced = announcer(config)?.announce(&agents(running, config), config.every() * 3).await?;
    let names: Vec<&str> = announced.agents.iter().map(|agent| agent.name.as_str()).collect();
    let mut told = format!("announced to {}: {}", config.to.as_deref().unwrap_or_default(), names.join(", "));
    for refused in &announced.refused {
        told = format!("{told}; {} was refused: {}", refused.name, refused.message);
    }
    Ok(told)
}

/// Says good-bye, if that can be done quickly; else the lease ends by itself.
pub async fn withdraw(running: &Running) {
    let config = running.config.load_full();
    let Some(announce) = &config.announce else { return };
    let parting = async { announcer(announce)?.withdraw(&agents(running, announce)).await };
    match tokio::time::timeout(GOODBYE, parting).await {
        Ok(Ok(())) => tracing::info!("the agents' announcements were withdrawn"),
        Ok(Err(error)) => tracing::warn!("the agents' announcements were not withdrawn: {error:#}"),
        Err(_) => tracing::warn!("the agents' announcements were not withdrawn: no answer"),
    }
}
