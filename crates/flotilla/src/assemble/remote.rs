//! Agents elsewhere: their links, and what their cards say put beside what the configuration says.

use crate::config::{AgentConfig, Config};
use anyhow::Result;
use flotilla_core::hub::Hub;
use flotilla_core::ports::Link;
use flotilla_core::registry::{Agent, Face};
use flotilla_outbound::guard::Guard;
use flotilla_outbound::remote::options::Options;
use flotilla_outbound::remote::{Remote, RemoteLink, watch};
use flotilla_protocol::a2a::{HUB_EXTENSIONS, STREAM_RESUME};
use std::sync::{Arc, Weak};

/// An agent whose card is to be watched.
pub struct Watched {
    name: String,
    config: AgentConfig,
    link: Weak<RemoteLink>,
    remote: Weak<Remote>,
}

/// A link to an agent elsewhere. Nothing is called yet.
pub fn link(name: &str, agent: &AgentConfig, config: &Config) -> Result<(Arc<dyn Link>, Watched)> {
    let limits = config.limits.limits();
    let options = Options { depth: limits.json_depth, ..agent.remote_options(name, limits.body)? };
    let remote = Arc::new(Remote::new(options, Guard::new(config.targets.rules()?))?);
    let link = Arc::new(RemoteLink(Arc::clone(&remote)));
    let watched = Watched {
        name: name.to_owned(),
        config: agent.clone(),
        link: Arc::downgrade(&link),
        remote: Arc::downgrade(&remote),
    };
    Ok((link, watched))
}

impl Watched {
    /// Reads the card now and again, until the agent is configured anew.
    pub fn start(self, hub: &Arc<Hub>) {
        let hub = Arc::clone(hub);
        tokio::spawn(async move {
            let Self { name, config, link, remote } = self;
            let tell = |face: Face| {
                let Some(link) = link.upgrade() else { return };
                let link: Arc<dyn Link> = link;
                let known = hub.registry().by_name(&name).cloned();
                if let Some(agent) = known.filter(|agent| Arc::ptr_eq(&agent.link, &link)) {
                    hub.replace_agent(&with_face((*agent).clone(), &config, face));
                }
            };
            watch(remote, tell).await;
        });
    }
}

/// What the configuration says counts; what it leaves open is the card's to say.
fn with_face(mut agent: Agent, config: &AgentConfig, face: Face) -> Agent {
    if config.description.is_empty() && !face.description.is_empty() {
        agent.description = face.description;
    }
    if config.skills.is_empty() && !face.skills.is_empty() {
        agent.skills = face.skills;
    }
    if config.input_modes.is_none() && !face.input_modes.is_empty() {
        agent.input_modes = face.input_modes;
    }
    if config.output_modes.is_none() && !face.output_modes.is_empty() {
        agent.output_modes = face.output_modes;
    }
    agent.capabilities.extensions.retain(|extension| extension.uri.starts_with(HUB_EXTENSIONS));
    agent.capabilities.extensions.extend(face.extensions);
    if config.streaming.is_none() {
        agent.capabilities.streaming = face.streaming;
        if !face.streaming {
            agent.capabilities.extensions.retain(|extension| extension.uri != STREAM_RESUME);
        }
    }
    agent
}
