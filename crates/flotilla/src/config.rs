//! The configuration file: what may stand in it, its defaults and its checks.

mod acp;
mod agent;
mod announce;
mod approvals;
mod auth;
mod borrowed;
mod budgets;
mod card;
mod claude;
mod codex;
mod command;
mod doors;
mod environment;
mod explain;
mod fleet;
mod git;
mod keep;
mod kind;
mod limits;
mod mcp;
mod metrics;
mod origin;
mod probe;
mod program;
mod push;
mod registry;
mod remote;
mod sockets;
mod span;
mod spelling;
mod tls;
mod worker;

pub use agent::{AgentConfig, Dedupe, ExtendedConfig, OnLost, SkillConfig, Visibility, anything};
pub use announce::AnnounceConfig;
pub use approvals::ApprovalsConfig;
pub use auth::AuthConfig;
pub use budgets::BudgetsConfig;
pub use card::CardForm;
pub use fleet::{FleetConfig, NotifyConfig};
pub use keep::{IdempotencyConfig, RetentionConfig};
pub use kind::Kind;
pub use limits::LimitsConfig;
pub use metrics::MetricsConfig;
pub use origin::Origin;
pub use push::{PushSettings, TargetsConfig};
pub use registry::RegistryConfig;
pub use sockets::SocketsConfig;
pub use span::Span;
pub use spelling::{inward, merge, outward, outward_words};
pub use tls::TlsConfig;
pub use worker::{WorkerConfig, WorkerFile};

use anyhow::{Context, Result, bail};
use flotilla_core::key::is_key;
use flotilla_core::loops::Keep;
use flotilla_core::registry::check_name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The whole file. Unknown keys are errors.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    pub hub: HubConfig,
    pub store: StoreConfig,
    pub log: Log,
    pub limits: LimitsConfig,
    pub metrics: MetricsConfig,
    pub retention: RetentionConfig,
    pub idempotency: IdempotencyConfig,
    pub push: PushSettings,
    pub targets: TargetsConfig,
    pub sockets: SocketsConfig,
    pub registry: RegistryConfig,
    /// Where the hub's own agents are announced; nowhere if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub announce: Option<AnnounceConfig>,
    pub approvals: ApprovalsConfig,
    pub fleet: FleetConfig,
    pub budgets: BudgetsConfig,
    /// The agents by name. Without any, the hub has an `echo` agent.
    pub agents: BTreeMap<String, AgentConfig>,
    #[serde(skip)]
    said: borrowed::Said,
    /// The variables of other programs that counted.
    #[serde(skip)]
    pub borrowed: Vec<&'static str>,
    /// Where all this was read from.
    #[serde(skip)]
    pub origin: Origin,
}

/// The hub itself.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HubConfig {
    /// Address and port to listen on.
    pub listen: SocketAddr,
    /// Where the log is kept; the platform's data directory if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_dir: Option<PathBuf>,
    /// Name on the hub's own card.
    pub name: String,
    /// Description on the hub's own card; the default agent's if empty.
    pub description: String,
    /// Where callers reach the hub, if not at the address it listens on (behind a proxy, say).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub public_url: Option<String>,
    /// The agent that answers at the root; `echo` if there is one, or the only agent there is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_agent: Option<String>,
    /// Presets the owner's key (`flk_` and 64 hex digits). Write `${FLOTILLA_OWNER_KEY}` rather than the key itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner_key: Option<Secret>,
    /// A token of your choice that callers may show instead of a key, of at least 16 characters. Write
    /// `${NAME}` rather than the token itself; `A2A_AUTH_TOKEN` is taken if this is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_token: Option<Secret>,
    /// A file with the secret the hub seals credentials with and makes its signing keys of (64 hex digits); `secret.key`
    /// in the data directory, made at the first start, if absent. `FLOTILLA_SECRET_KEY` overrides both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_key_file: Option<PathBuf>,
    /// Lets callers in without a key. Only on a loopback address, unless the next one is set too.
    pub allow_anonymous: bool,
    /// Lets callers in without a key even on an address others can reach.
    pub allow_anonymous_remote: bool,
    /// Further names callers may use for the hub, beside its public URL's, addresses and names without a dot:
    /// `hub.example.com`, `*.example.com`, or `*` for any.
    pub allowed_hosts: Vec<String>,
    /// Origins whose web pages may use the hub, such as `https://app.example.com`. None may otherwise.
    pub allowed_origins: Vec<String>,
    /// Proxies whose `X-Forwarded-For` is believed: addresses or networks such as `10.0.0.0/8`.
    pub trusted_proxies: Vec<String>,
    /// The form of cards for readers who name no A2A version: `hybrid`, `1.0` or `0.3`. Hybrid at the root and 1.0
    /// below `/agents/NAME` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub card_form: Option<CardForm>,
    /// Lists gRPC of 0.3 as `http://HOST:PORT` instead of `HOST:PORT`. The official 0.3 kit wants it; published SDKs
    /// cannot dial it.
    pub card_grpc_scheme: bool,
    /// How often a quiet stream shows that it is alive.
    pub keep_alive: Span,
    /// How long a stopping hub waits for streams and runs to end.
    pub drain: Span,
    /// Speaks TLS on the same port, for every binding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsConfig>,
}

impl Default for HubConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 7420)),
            data_dir: None,
            name: "Flotilla".into(),
            description: String::new(),
            public_url: None,
            default_agent: None,
            owner_key: None,
            auth_token: None,
            secret_key_file: None,
            allow_anonymous: false,
            allow_anonymous_remote: false,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            trusted_proxies: Vec::new(),
            card_form: None,
            card_grpc_scheme: false,
            keep_alive: Span::seconds(15),
            drain: Span::seconds(10),
            tls: None,
        }
    }
}

/// A value that is never shown.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Secret(pub String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

impl Serialize for Secret {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("***")
    }
}

/// How the log is kept.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StoreConfig {
    /// `full`: every commit is on the disk before it is acknowledged. `normal`: a power cut may lose the last ones.
    pub sync: SyncConfig,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SyncConfig {
    #[default]
    Full,
    Normal,
}

/// What the process writes to standard error.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    pub level: Level,
    pub format: LogFormat,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Error,
    Warn,
    #[default]
    Info,
    Debug,
    Trace,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

impl Config {
    /// Reads and checks a file; without one, the defaults.
    pub fn load(path: Option<&Path>) -> Result<Self> {
        let config = match path {
            None => Self::default(),
            Some(path) => {
                let reading =
                    || format!("reading {} (--config, or FLOTILLA_CONFIG, names another file)", path.display());
                let text = std::fs::read_to_string(path).with_context(reading)?;
                let parsed = Self::parse(&text).with_context(|| path.display().to_string())?;
                Self { origin: Origin::of(path.to_owned(), &text), ..parsed }
            }
        };
        config.check()?;
        Ok(config)
    }

    pub fn parse(text: &str) -> Result<Self> {
        let filled = environment::fill(text, |name| std::env::var(name).ok())?;
        let text = &filled.text;
        if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
            return Ok(Self::default());
        }
        let read: Result<Self, _> = serde_saphyr::from_str(text);
        let config = read.map_err(|error| explain::plainly(&filled.mask(&error.to_string()), text))?;
        Ok(Self { said: borrowed::Said::read(text), ..config })
    }

    /// What a parser cannot know; reads the certificate, if there is one.
    pub fn check(&self) -> Result<()> {
        for (name, agent) in &self.agents {
            check_name(name).map_err(anyhow::Error::msg)?;
            agent.check().and_then(|()| agent.check_places()).with_context(|| format!("agents.{name}"))?;
        }
        if let Some(name) = &self.hub.default_agent
            && !self.agent_names().contains(&name.as_str())
        {
            bail!("hub.default_agent: there is no agent '{name}'; there are: {}", self.agent_names().join(", "));
        }
        self.limits.check()?;
        self.metrics.check(self.hub.listen)?;
        self.hub.check_doors()?;
        self.push.check()?;
        self.sockets.check()?;
        self.registry.check()?;
        self.approvals.check()?;
        self.fleet.check()?;
        self.budgets.check()?;
        self.targets.rules()?;
        if let Some(tls) = &self.hub.tls {
            tls.acceptor()?;
        }
        if self.hub.owner_key.as_ref().is_some_and(|key| !is_key(&key.0)) {
            bail!("hub.owner_key must be 'flk_' and 64 hex digits: echo flk_$(openssl rand -hex 32)");
        }
        if self.retention.interval.0.is_zero() || self.hub.keep_alive.0.is_zero() {
            bail!("retention.interval and hub.keep_alive must be longer than nothing");
        }
        Ok(())
    }

    /// Asked once flags and environment have had their say: they may change the addresses.
    pub fn check_whole(&self) -> Result<()> {
        let hub = &self.hub;
        self.targets.rules()?;
        if let Some(url) = &hub.public_url {
            check_public(url)?;
        }
        if let Some(announce) = &self.announce {
            announce.check(&self.agent_names())?;
        }
        if let Some(token) = &hub.auth_token {
            check_token(&token.0)?;
        }
        if hub.allow_anonymous && !hub.listen.ip().is_loopback() && !hub.allow_anonymous_remote {
            bail!(
                "anonymous access (hub.allow_anonymous, or A2A_REQUIRE_AUTH=false) on {} would let anyone on the network \
                 use this hub; listen on 127.0.0.1, or set hub.allow_anonymous_remote (--allow-anonymous \
                 --allow-anonymous-remote) if that is what you want",
                hub.listen
            );
        }
        Ok(())
    }

    pub fn agent_names(&self) -> Vec<&str> {
        if self.agents.is_empty() { vec!["echo"] } else { self.agents.keys().map(String::as_str).collect() }
    }

    /// Whether everybody sees the agent.
    pub fn is_public(&self, agent: &str) -> bool {
        self.agents.get(agent).is_none_or(|agent| agent.visibility == Visibility::Public)
    }

    pub fn default_agent(&self) -> Option<String> {
        let names = self.agent_names();
        let fallback = if names.contains(&"echo") { Some("echo") } else { None };
        let only = if let [only] = names.as_slice() { Some(*only) } else { None };
        self.hub.default_agent.clone().or_else(|| fallback.or(only).map(str::to_owned))
    }

    pub fn keep(&self) -> Keep {
        Keep {
            tasks: self.retention.tasks.map(|span| span.0),
            tasks_max: self.retention.tasks_max,
            events: self.retention.events.map(|span| span.0),
            dedupe: self.idempotency.window.0,
            dedupe_max: self.idempotency.max,
        }
    }
}

/// Only its hash is stored, so it must be long enough that nobody finds it by trying.
fn check_token(token: &str) -> Result<()> {
    if token.len() < 16 || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        bail!(
            "hub.auth_token (A2A_AUTH_TOKEN) must be at least 16 characters that can stand in a header, without spaces: \
             openssl rand -hex 32"
        );
    }
    Ok(())
}

/// Every card says it, to anyone.
fn check_public(url: &str) -> Result<()> {
    let Some((_, rest)) = url.split_once("://").filter(|(scheme, _)| matches!(*scheme, "http" | "https")) else {
        bail!("hub.public_url (--public-url): '{url}' must start with http:// or https://");
    };
    if rest.split(['/', '?', '#']).next().is_some_and(|host| host.contains('@')) {
        bail!("hub.public_url (--public-url): cards publish it, so it takes no user name or password");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
