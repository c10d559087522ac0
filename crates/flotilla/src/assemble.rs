//! Assembly: the only place that knows every crate. Configuration in, a working hub out.

mod here;
mod remote;

pub use remote::Watched;

use crate::config::{AgentConfig, Config, Dedupe, Kind, OnLost, Visibility, anything};
use anyhow::{Context, Result};
use flotilla_core::hub::Push;
use flotilla_core::ports::{Link, Store};
use flotilla_core::registry::{self, Agent, DedupeBy, Registry};
use flotilla_inbound::Settings;
use flotilla_outbound::guard::Guard;
use flotilla_outbound::webhook::Webhooks;
use flotilla_outbound::webhook::keys::{Keys, Master};
use flotilla_protocol::a2a::card::{AgentCapabilities, AgentExtension, AgentSkill};
use flotilla_protocol::a2a::{PUSH_OPTIONS, STREAM_RESUME};
use flotilla_protocol::lineage::ANCESTRY;
use flotilla_protocol::wire::Object;
use flotilla_worker::Agent as Doer;
use flotilla_worker::script::Script;
use here::InProcess;
use hyper::Uri;
use std::net::SocketAddr;
use std::sync::Arc;

/// The agents, and those of them whose cards are to be watched once there is a hub.
pub struct Assembled {
    pub registry: Registry,
    pub watched: Vec<Watched>,
}

pub async fn registry(config: &Config, store: &Arc<dyn Store>) -> Result<Assembled> {
    let (mut agents, mut watched) = (Vec::new(), Vec::new());
    let echo = AgentConfig::echo();
    let fallback = [("echo", &echo)];
    let configured = config.agents.iter().map(|(name, agent)| (name.as_str(), agent));
    let chosen: Vec<_> = if config.agents.is_empty() { fallback.to_vec() } else { configured.collect() };
    for (name, agent) in chosen {
        let (link, watch) = link(name, agent, config).with_context(|| format!("agents.{name}"))?;
        watched.extend(watch);
        agents.push(build(name, agent, link, store).await.with_context(|| format!("agents.{name}"))?);
    }
    Ok(Assembled { registry: Registry::new(agents, config.default_agent()), watched })
}

fn link(name: &str, agent: &AgentConfig, config: &Config) -> Result<(Arc<dyn Link>, Option<Watched>)> {
    let doer = match (&agent.kind, &agent.script) {
        (Kind::A2a, _) => {
            let (link, watched) = remote::link(name, agent, config)?;
            return Ok((link, Some(watched)));
        }
        (Kind::Script, Some(script)) => Doer::Script(Arc::new(Script::compile(script)?)),
        (Kind::Command, _) => Doer::Command(Arc::new(agent.program()?)),
        _ => Doer::Echo,
    };
    Ok((Arc::new(InProcess::new(doer)), None))
}

async fn build(name: &str, config: &AgentConfig, link: Arc<dyn Link>, store: &Arc<dyn Store>) -> Result<Agent> {
    let owner = store.principal(config.owner().map_err(anyhow::Error::msg)?).await?;
    Ok(Agent {
        id: store.agent(name, owner.id).await?,
        name: name.to_owned(),
        owner: owner.id,
        workspace: owner.workspace,
        visibility: match config.visibility {
            Visibility::Private => registry::Visibility::Private,
            Visibility::Workspace => registry::Visibility::Workspace,
            Visibility::Public => registry::Visibility::Public,
        },
        description: describe(name, config),
        version: config.version.clone(),
        capabilities: capabilities(config)?,
        input_modes: config.input_modes.clone().unwrap_or_else(anything),
        output_modes: config.output_modes.clone().unwrap_or_else(anything),
        // What only a card elsewhere says, the agent elsewhere judges by.
        checks_modes: config.kind != Kind::A2a || config.input_modes.is_some() || config.output_modes.is_some(),
        skills: skills(name, config),
        dedupe: match config.dedupe {
            Dedupe::MessageId => DedupeBy::MessageId,
            Dedupe::Header => DedupeBy::Header,
        },
        on_lost: match config.on_lost {
            OnLost::Fail => registry::OnLost::Fail,
            OnLost::Retry => registry::OnLost::Retry,
        },
        link,
    })
}

/// The courier, and the public part of the key it signs with.
pub fn push(config: &Config, master: &Master) -> Result<(Push, Arc<str>)> {
    let keys = Keys::new(master).map_err(anyhow::Error::msg)?;
    let jwks = keys.jwks().into();
    let guard = Guard::new(config.targets.rules()?);
    let courier = Arc::new(Webhooks::new(guard, keys, config.push.timeout.0));
    Ok((Push { courier, schedule: config.push.schedule() }, jwks))
}

fn describe(name: &str, config: &AgentConfig) -> String {
    if config.description.is_empty() { format!("The agent {name}.") } else { config.description.clone() }
}

/// A card must name at least one skill; an agent without any is told by its own name.
fn skills(name: &str, config: &AgentConfig) -> Vec<AgentSkill> {
    if config.skills.is_empty() {
        return vec![AgentSkill {
            id: name.to_owned(),
            name: name.to_owned(),
            description: describe(name, config),
            tags: vec![format!("{:?}", config.kind).to_lowercase()],
            examples: Vec::new(),
            input_modes: Vec::new(),
            output_modes: Vec::new(),
        }];
    }
    let skill = |skill: &crate::config::SkillConfig| AgentSkill {
        id: skill.id.clone(),
        name: skill.name.clone(),
        description: skill.description.clone(),
        tags: skill.tags.clone(),
        examples: skill.examples.clone(),
        input_modes: skill.input_modes.clone(),
        output_modes: skill.output_modes.clone(),
    };
    config.skills.iter().map(skill).collect()
}

fn capabilities(config: &AgentConfig) -> Result<AgentCapabilities> {
    let mut extensions = vec![AgentExtension {
        uri: ANCESTRY.into(),
        description:
            "A request's metadata may say whom it is made for and until when: chain, hops, maxHops, deadline. \
                      Rings, long chains and work that is too late are rejected."
                .into(),
        required: false,
        params: None,
    }];
    let streaming = config.streaming.unwrap_or(true);
    if streaming {
        extensions.push(AgentExtension {
            uri: STREAM_RESUME.into(),
            description: "Streams carry event ids; send the last one as Last-Event-ID to SubscribeToTask to go on \
                          without a gap."
                .into(),
            required: false,
            params: None,
        });
    }
    if config.push_notifications {
        extensions.push(AgentExtension {
            uri: PUSH_OPTIONS.into(),
            description: "A push config's metadata may say which events its webhook is told, and how: events (all, \
                          status), chunks (each, whole), hubSignature."
                .into(),
            required: false,
            params: None,
        });
    }
    for extension in &config.extensions {
        extensions.push(AgentExtension {
            uri: extension.uri.clone(),
            description: extension.description.clone(),
            required: extension.required,
            params: extension.params.as_ref().map(Object::of).transpose()?,
        });
    }
    let push_notifications = config.push_notifications;
    Ok(AgentCapabilities { streaming, push_notifications, extensions, extended_agent_card: false })
}

pub fn settings(config: &Config, address: SocketAddr, jwks: Arc<str>) -> Settings {
    let public = config.hub.public_url.as_deref().and_then(|url| url.parse::<Uri>().ok()?.host().map(str::to_owned));
    let hosts = config.hub.allowed_hosts.iter().cloned().chain(public);
    Settings {
        allowed_hosts: hosts.map(|host| host.to_lowercase()).collect(),
        allowed_origins: config.hub.allowed_origins.clone(),
        trusted_proxies: config.hub.trusted_proxies(),
        name: config.hub.name.clone(),
        description: config.hub.description.clone(),
        schemes: schemes(config),
        public_url: public_url(config, address),
        anonymous: config.hub.allow_anonymous,
        jwks,
        card_form: config.hub.card_form.map(Into::into),
        keep_alive: config.hub.keep_alive.0,
    }
}

/// What a web page of the hub's own may have been loaded over: what the port speaks, and what a proxy in front of it does.
fn schemes(config: &Config) -> Vec<String> {
    let plain = config.hub.tls.as_ref().is_none_or(|tls| tls.allow_plain).then_some("http");
    let secure = config.hub.tls.is_some().then_some("https");
    let public = config.hub.public_url.as_deref().and_then(|url| Some(url.split_once("://")?.0));
    plain.into_iter().chain(secure).chain(public).map(str::to_owned).collect()
}

/// What the configuration says, or the address listened on; "everywhere" is told as this machine.
fn public_url(config: &Config, address: SocketAddr) -> String {
    let scheme = if config.hub.tls.is_some() { "https" } else { "http" };
    match &config.hub.public_url {
        Some(url) => url.trim_end_matches('/').to_owned(),
        None if address.ip().is_unspecified() => format!("{scheme}://localhost:{}", address.port()),
        None => format!("{scheme}://{address}"),
    }
}
