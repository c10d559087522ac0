//! Assembly: the only place that knows every crate. Configuration in, a working hub out.

mod here;
mod inspect;
mod member;
mod remote;
mod scout;

pub use member::{Here, PLACES, look_after};
pub use scout::Recruiter;

use crate::config::{AgentConfig, Config, Dedupe, ExtendedConfig, Kind, SkillConfig, Visibility, anything};
use anyhow::{Context, Result};
use flotilla_core::hub::Push;
use flotilla_core::ids::{AgentId, PrincipalId, WorkspaceId};
use flotilla_core::ports::{Link, Scout as _, Store};
use flotilla_core::registry::{
    Added, Agent, DedupeBy, Extended, LeftOpen, Registry, Source, hub_capabilities, hub_versions,
};
use flotilla_core::roster::{Dialed, Roster};
use flotilla_inbound::Settings;
use flotilla_outbound::guard::Guard;
use flotilla_outbound::webhook::Webhooks;
use flotilla_outbound::webhook::keys::{Keys, Master};
use flotilla_protocol::a2a::card::{AgentCapabilities, AgentExtension, AgentProvider, AgentSkill};
use flotilla_protocol::wire::Object;
use flotilla_worker::Agent as Doer;
use flotilla_worker::attach::Found;
use flotilla_worker::claude::Claude;
use flotilla_worker::probe::trial::Trials;
use flotilla_worker::script::Script;
use here::InProcess;
use hyper::Uri;
use remote::Unmade;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

/// Where agents are kept, and where those are who dial in.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    pub store: &'a Arc<dyn Store>,
    pub roster: &'a Roster,
    /// Where agents on this machine keep what is theirs.
    pub state: &'a Path,
    /// What of this process outlives a configuration.
    pub here: &'a Here,
    /// The agents until now.
    pub before: &'a Registry,
}

/// The agents of the configuration, those that registered themselves, and those that were added; of two with one name, the
/// configured one.
pub async fn registry(config: &Config, place: Place<'_>, recruiter: &Recruiter) -> Result<Registry> {
    let mut agents = Vec::new();
    let echo = AgentConfig::echo();
    let fallback = [("echo", &echo)];
    let configured = config.agents.iter().map(|(name, agent)| (name.as_str(), agent));
    let chosen: Vec<_> = if config.agents.is_empty() { fallback.to_vec() } else { configured.collect() };
    place.here.begin();
    for (name, agent) in chosen {
        agents.push(build(name, agent, config, (place, recruiter)).await.with_context(|| format!("agents.{name}"))?);
    }
    let names = config.agent_names();
    let on_lost = config.sockets.on_lost.into();
    for (id, registration) in place.store.registrations().await? {
        if !names.contains(&registration.name.as_str()) {
            agents.push(registration.agent(id, on_lost, place.roster.link(id)));
        }
    }
    for (id, added) in place.store.added().await? {
        if names.contains(&added.name.as_str()) {
            tracing::warn!(agent = %added.name, "the configuration names an agent that was added too; the configured one counts");
            continue;
        }
        let before = place.before.by_name(&added.name);
        agents.push(again(id, added, recruiter, before.map(|agent| &**agent))?);
    }
    let registry = Registry::new(agents, config.default_agent());
    recruiter.proven.retain(|name| registry.by_name(name).is_some()).await?;
    Ok(registry)
}

/// An agent that was added, as it is kept. One that cannot be made any more does not keep the hub from starting.
fn again(id: AgentId, added: Added, recruiter: &Recruiter, before: Option<&Agent>) -> Result<Agent> {
    match recruiter.build(&added, before) {
        Ok(agent) => Ok(Agent { id, ..agent }),
        Err(refusal) => {
            let problem = refusal.message;
            tracing::error!(agent = %added.name, problem, "the settings of an agent that was added do not work");
            let link = Arc::new(Unmade { problem });
            let place = (id, added.owner, added.workspace);
            let config =
                AgentConfig { visibility: Visibility::Private, description: String::new(), ..AgentConfig::echo() };
            agent_of(&added.name.clone(), &config, place, Source::Added(Arc::new(added)), link)
        }
    }
}

async fn link(
    name: &str,
    id: AgentId,
    agent: &AgentConfig,
    config: &Config,
    (place, recruiter): (Place<'_>, &Recruiter),
) -> Result<Arc<dyn Link>> {
    match agent.kind {
        Kind::A2a => {
            let before = place.before.by_name(name).map(|agent| &agent.link);
            remote::link(name, agent, config, false, &recruiter.proven, before)
        }
        Kind::Socket => Ok(Arc::new(Dialed::new(place.roster, id, agent.terms(&config.sockets)))),
        _ => {
            let state = place.state.join("agents").join(name);
            Ok(Arc::new(InProcess::new(name, find(agent, Some(&state)).await?, place.here)))
        }
    }
}

/// Who does the work of an agent on this machine, in a hub and in a worker alike; `state` is a folder of its own.
async fn doer(agent: &AgentConfig, state: Option<&Path>) -> Result<Doer> {
    Ok(match (&agent.kind, &agent.script) {
        (Kind::Script, Some(script)) => Doer::Script(Arc::new(Script::compile(script)?)),
        (Kind::Command, _) => Doer::Command(Arc::new(agent.program(state)?)),
        (Kind::Acp | Kind::Opencode, _) => Doer::Acp(Arc::new(agent.acp_program(state)?)),
        (Kind::Codex, _) => Doer::Codex(Arc::new(agent.codex_program(state)?)),
        (Kind::ClaudeCode, _) => {
            let found = Claude::find(agent.claude(state)?).await;
            Doer::Claude(Arc::new(found.map_err(anyhow::Error::msg).context("claude_code")?))
        }
        _ => Doer::Echo,
    })
}

/// Whoever does the work of an agent on this machine, if all it needs is there now, and what is looked at of it.
pub async fn find(agent: &AgentConfig, state: Option<&Path>) -> Result<Found> {
    agent.check_places()?;
    let doer = doer(agent, state).await?;
    let looks = inspect::looks(agent)?;
    let trials = agent.probe_terms().map(|terms| Trials::open(terms, state.map(|state| state.join("probe.json"))));
    Ok(Found { doer, looks, trials })
}

async fn build(name: &str, agent: &AgentConfig, whole: &Config, by: (Place<'_>, &Recruiter)) -> Result<Agent> {
    let store = by.0.store;
    let owner = store.principal(agent.owner().map_err(anyhow::Error::msg)?).await?;
    let id = store.agent(name, owner.id).await?;
    let link = link(name, id, agent, whole, by).await?;
    let source = Source::Configured(whole.origin.place(name).into());
    agent_of(name, agent, (id, owner.id, owner.workspace), source, link)
}

/// The agent that an entry of the configuration describes, or one that was added.
fn agent_of(
    name: &str,
    config: &AgentConfig,
    (id, owner, workspace): (AgentId, PrincipalId, WorkspaceId),
    source: Source,
    link: Arc<dyn Link>,
) -> Result<Agent> {
    let is_elsewhere = config.kind == Kind::A2a;
    Ok(Agent {
        id,
        name: name.to_owned(),
        owner,
        workspace,
        visibility: config.visibility.into(),
        description: describe(name, config),
        version: config.version.clone(),
        capabilities: capabilities(config)?,
        input_modes: config.input_modes.clone().unwrap_or_else(anything),
        output_modes: config.output_modes.clone().unwrap_or_else(anything),
        // What only a card elsewhere says, the agent elsewhere judges by.
        checks_modes: !is_elsewhere || config.input_modes.is_some() || config.output_modes.is_some(),
        skills: skills(name, config),
        extended: config.extended.as_ref().map(extended),
        dedupe: match config.dedupe {
            Dedupe::MessageId => DedupeBy::MessageId,
            Dedupe::Header => DedupeBy::Header,
        },
        on_lost: config.on_lost.into(),
        // Those of an agent elsewhere are known once its card is read.
        versions: if is_elsewhere { Vec::new() } else { hub_versions() },
        left_open: if is_elsewhere { remote::left_open(config) } else { LeftOpen::default() },
        source,
        link,
    })
}

pub fn push(config: &Config, master: &Master) -> Result<Push> {
    let keys = Keys::new(master).map_err(anyhow::Error::msg)?;
    let guard = Guard::new(config.targets.rules()?);
    let courier = Arc::new(Webhooks::new(guard, keys, config.push.timeout.0));
    Ok(Push { courier, schedule: config.push.schedule() })
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
            tags: vec![config.kind.name().to_owned()],
            examples: Vec::new(),
            input_modes: Vec::new(),
            output_modes: Vec::new(),
        }];
    }
    config.skills.iter().map(skill).collect()
}

fn skill(skill: &SkillConfig) -> AgentSkill {
    AgentSkill {
        id: skill.id.clone(),
        name: skill.name.clone(),
        description: skill.description.clone(),
        tags: skill.tags.clone(),
        examples: skill.examples.clone(),
        input_modes: skill.input_modes.clone(),
        output_modes: skill.output_modes.clone(),
    }
}

fn extended(config: &ExtendedConfig) -> Extended {
    let provider = config.provider.clone();
    Extended {
        description: config.description.clone(),
        skills: config.skills.iter().map(skill).collect(),
        documentation_url: config.documentation_url.clone(),
        provider: provider.map(|provider| AgentProvider { url: provider.url, organization: provider.organization }),
        contact: config.contact.clone(),
    }
}

fn capabilities(config: &AgentConfig) -> Result<AgentCapabilities> {
    let mut capabilities = hub_capabilities(config.streaming.unwrap_or(true), config.push_notifications);
    for extension in &config.extensions {
        capabilities.extensions.push(AgentExtension {
            uri: extension.uri.clone(),
            description: extension.description.clone(),
            required: extension.required,
            params: extension.params.as_ref().map(Object::of).transpose()?,
        });
    }
    capabilities.extended_agent_card = config.extended.is_some();
    Ok(capabilities)
}

pub fn settings(config: &Config, address: SocketAddr) -> Settings {
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
        card_form: config.hub.card_form.map(Into::into),
        card_grpc_scheme: config.hub.card_grpc_scheme,
        metrics_need_key: config.metrics.need_key(),
        keep_alive: config.hub.keep_alive.0,
        sockets: config.sockets.sockets(),
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
