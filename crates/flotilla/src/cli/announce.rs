//! `flotilla announce`: tells another hub, or a registry, of a hub's agents.

use super::output::aside;
use super::{block_on, output};
use crate::announcer::{Announcer, Known, public_agents};
use crate::config::Span;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use flotilla_outbound::hub::announce::Announced;
use serde_json::json;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

#[derive(Debug, Args)]
pub struct Announce {
    /// The hub whose agents are announced
    #[arg(long, env = "FLOTILLA_URL", value_name = "URL", default_value = "http://127.0.0.1:7420")]
    hub: String,
    /// The other hub, or the address at which a registry takes cards
    #[arg(long, env = "A2A_REGISTRY_URL", value_name = "URL")]
    to: String,
    /// A key of the other hub with the scope agents:write. Others on this machine
    /// can see it in the process list: better set A2A_REGISTRY_AUTH_TOKEN
    #[arg(long, env = "A2A_REGISTRY_AUTH_TOKEN", value_name = "KEY", hide_env_values = true)]
    key: Option<String>,
    /// Announce this agent only (may be given several times) [default: all public
    /// ones]
    #[arg(long = "agent", value_name = "NAME")]
    agents: Vec<String>,
    /// Put this before their names there
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    prefix: String,
    /// What the other hub is to show to this one: a secret it has, as env:NAME or
    /// file:PATH
    #[arg(long, value_name = "PLACE")]
    auth: Option<String>,
    /// Say again so often that they are there, and withdraw them at the end
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = Span::parse)]
    every: Span,
    /// Say it once; it holds for three times --every
    #[arg(long)]
    once: bool,
}

impl Announce {
    pub fn run(&self) -> Result<()> {
        if self.every.0 < Duration::from_secs(1) || self.every.0 > Duration::from_secs(8 * 3600) {
            bail!("--every must be from 1s to 8h");
        }
        block_on(self.announce())
    }

    async fn announce(&self) -> Result<()> {
        let agents = self.chosen().await?;
        let auth = self.auth.as_ref().map(|place| json!({"bearer": place}));
        let announcer = Announcer::new(&self.to, self.key.clone(), self.prefix.clone(), auth)?;
        let lease = self.every.0 * 3;
        let check = "check --to, and that the key there has the scope agents:write";
        tell(&announcer.announce(&agents, lease).await.context(check)?)?;
        if self.once {
            return Ok(());
        }
        let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        loop {
            tokio::select! {
                _ = interrupt.recv() => break,
                _ = terminate.recv() => break,
                () = tokio::time::sleep(self.every.0) => {}
            }
            // The other side may be away for a while.
            if let Err(error) = announcer.announce(&agents, lease).await {
                aside!("flotilla: not announced, which is tried again: {error:#}");
            }
        }
        announcer.withdraw(&agents).await?;
        aside!("withdrawn");
        Ok(())
    }

    async fn chosen(&self) -> Result<Vec<Known>> {
        let public = public_agents(&self.hub).await.context("check that the hub runs (flotilla serve), and --hub")?;
        if let Some(name) = self.agents.iter().find(|name| public.iter().all(|agent| agent.name != **name)) {
            let names: Vec<&str> = public.iter().map(|agent| agent.name.as_str()).collect();
            bail!("the hub has no public agent '{name}'; it has: {}", names.join(", "));
        }
        let wanted = |agent: &Known| self.agents.is_empty() || self.agents.contains(&agent.name);
        Ok(public.into_iter().filter(wanted).collect())
    }
}

fn tell(announced: &Announced) -> Result<()> {
    for agent in &announced.agents {
        output::line(&format!("announced: {}", agent.name));
    }
    for refused in &announced.refused {
        aside!("refused: {}: {}", refused.name, refused.message);
    }
    if announced.agents.is_empty() {
        bail!("no agent was announced; --prefix changes the names they have there");
    }
    Ok(())
}
