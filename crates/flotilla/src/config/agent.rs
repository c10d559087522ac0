//! An agent in the configuration.

use super::Span;
use super::acp::AcpConfig;
use super::auth::AuthConfig;
use super::claude::ClaudeConfig;
use super::codex::CodexConfig;
use super::command::CommandConfig;
use super::kind::Kind;
use super::remote::{BreakerConfig, PollConfig, ProtoFiles, RetriesConfig, TimeoutsConfig};
use super::sockets::{Connections, SocketsConfig, check_ttl};
use anyhow::{Result, bail};
use flotilla_core::key::FullName;
use flotilla_core::registry;
use flotilla_core::roster::Terms;
use flotilla_protocol::canonical;
use flotilla_worker::script::{Script, ScriptConfig};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// One agent: what its card says, and what it does.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentConfig {
    pub kind: Kind,
    /// Who owns the agent and sees all it does, as `NAME` or `WORKSPACE/NAME`; the hub's owner if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Who the agent is there for: its owner (`private`), its owner's `workspace`, or all (`public`, the default).
    #[serde(default)]
    pub visibility: Visibility,
    #[serde(default)]
    pub description: String,
    #[serde(default = "first_version")]
    pub version: String,
    /// Whether callers may stream; yes if absent. An `a2a` agent's card says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streaming: Option<bool>,
    /// Whether callers may have the task's progress reported to a webhook.
    #[serde(default = "yes")]
    pub push_notifications: bool,
    #[serde(default)]
    pub skills: Vec<SkillConfig>,
    /// Media types the agent takes; all (`*/*`) if absent. An `a2a` agent's card says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_modes: Option<Vec<String>>,
    /// Media types the agent makes, as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_modes: Option<Vec<String>>,
    /// Extensions the agent supports, beside the hub's own.
    #[serde(default)]
    pub extensions: Vec<ExtensionConfig>,
    /// What callers with a key learn beyond the public card; see docs/cards.md.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extended: Option<ExtendedConfig>,
    /// What makes two sends the same: `message-id` (default) or only the `Idempotency-Key` `header`.
    #[serde(default)]
    pub dedupe: Dedupe,
    /// What becomes of a started run when the hub stops, or its agent goes away for good: `fail` (default) or `retry`.
    #[serde(default)]
    pub on_lost: OnLost,
    /// Of a `socket` agent: how long a message waits while it is not connected; the `sockets` section's if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Span>,
    /// Of a `socket` agent: how long a run it took is held while it is away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace: Option<Span>,
    /// Of a `socket` agent: whether a new connection takes the place of the old (`replace`), or they `share` the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<Connections>,
    /// What a `script` agent does; see docs/script-agent.md.
    #[serde(default, skip_serializing)]
    pub script: Option<ScriptConfig>,
    /// The program of a `command` agent; see docs/command-agent.md.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandConfig>,
    /// The program of an `acp` agent; see docs/acp-agent.md.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acp: Option<Box<AcpConfig>>,
    /// Where opencode is, for an `opencode` agent: as `acp`, see docs/acp-agent.md.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opencode: Option<Box<AcpConfig>>,
    /// Where Codex is, for a `codex` agent; see docs/codex.md.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub codex: Option<Box<CodexConfig>>,
    /// Where Claude Code is, for a `claude-code` agent; see docs/claude-code.md.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claude_code: Option<Box<ClaudeConfig>>,
    /// Where an `a2a` agent is; its card is at the well-known path below. See docs/remote-agents.md.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// An `a2a` agent's card instead: its address, or a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<String>,
    /// How long an `a2a` agent's card is believed before it is read again (5m).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card_refresh: Option<Span>,
    /// Keys one of which must have signed an `a2a` agent's card: thumbprints (RFC 7638), or keys as JSON. Any card will do
    /// if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub card_keys: Vec<String>,
    /// Bindings to call an `a2a` agent by, the preferred one first; its card's order if absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transports: Vec<String>,
    /// The version of A2A to speak to an `a2a` agent; the highest both know if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// How an `a2a` agent of 0.3 has the bytes of files over gRPC and HTTP+JSON: `auto`, `text` or `bytes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proto_files: Option<ProtoFiles>,
    /// What proves to an `a2a` agent who calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<AuthConfig>,
    /// More headers for every call of an `a2a` agent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Origins beside that of `url` or `card` to which `auth` and `headers` of an `a2a` agent may go.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credentials_for: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<TimeoutsConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<RetriesConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breaker: Option<BreakerConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll: Option<PollConfig>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Visibility {
    Private,
    Workspace,
    #[default]
    Public,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Dedupe {
    #[default]
    MessageId,
    Header,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnLost {
    #[default]
    Fail,
    Retry,
}

impl From<Visibility> for registry::Visibility {
    fn from(visibility: Visibility) -> Self {
        match visibility {
            Visibility::Private => Self::Private,
            Visibility::Workspace => Self::Workspace,
            Visibility::Public => Self::Public,
        }
    }
}

impl From<OnLost> for registry::OnLost {
    fn from(on_lost: OnLost) -> Self {
        match on_lost {
            OnLost::Fail => Self::Fail,
            OnLost::Retry => Self::Retry,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SkillConfig {
    pub id: String,
    pub name: String,
    pub description: String,
    #[serde(default)]
    pub tags: Vec<String>,
    #[serde(default)]
    pub examples: Vec<String>,
    #[serde(default)]
    pub input_modes: Vec<String>,
    #[serde(default)]
    pub output_modes: Vec<String>,
}

/// The extended card: what it says beyond the public one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ExtendedConfig {
    /// In the place of the public description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Skills beside the public ones.
    pub skills: Vec<SkillConfig>,
    /// Where the agent is documented.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub documentation_url: Option<String>,
    /// Who runs the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<ProviderConfig>,
    /// Whom to ask about the agent: a name, an address, a channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contact: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProviderConfig {
    pub organization: String,
    pub url: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExtensionConfig {
    pub uri: String,
    #[serde(default)]
    pub description: String,
    /// Refuse callers that do not name the extension.
    #[serde(default)]
    pub required: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Map<String, Value>>,
}

fn yes() -> bool {
    true
}

fn first_version() -> String {
    "1.0.0".into()
}

/// What an agent takes and makes that does not say.
pub fn anything() -> Vec<String> {
    vec!["*/*".into()]
}

impl AgentConfig {
    /// The agent of a hub that was not told of any.
    pub fn echo() -> Self {
        Self {
            kind: Kind::Echo,
            owner: None,
            visibility: Visibility::Public,
            description: "Sends back what it is sent: one artifact with the message's parts unchanged.".into(),
            version: first_version(),
            streaming: None,
            push_notifications: true,
            skills: Vec::new(),
            input_modes: None,
            output_modes: None,
            extensions: Vec::new(),
            extended: None,
            dedupe: Dedupe::MessageId,
            on_lost: OnLost::Fail,
            ttl: None,
            grace: None,
            connections: None,
            script: None,
            command: None,
            acp: None,
            opencode: None,
            codex: None,
            claude_code: None,
            url: None,
            card: None,
            card_refresh: None,
            card_keys: Vec::new(),
            transports: Vec::new(),
            protocol_version: None,
            proto_files: None,
            auth: None,
            headers: BTreeMap::new(),
            credentials_for: Vec::new(),
            timeouts: None,
            retries: None,
            breaker: None,
            poll: None,
        }
    }

    /// With the defaults that depend on the kind written out.
    pub fn fill(&mut self) {
        if self.kind != Kind::A2a {
            self.streaming.get_or_insert(true);
            self.input_modes.get_or_insert_with(anything);
            self.output_modes.get_or_insert_with(anything);
        }
    }

    /// How it is treated when it connects by itself.
    pub fn terms(&self, sockets: &SocketsConfig) -> Terms {
        let usual = sockets.terms();
        Terms {
            ttl: self.ttl.map_or(usual.ttl, |ttl| ttl.0),
            grace: self.grace.map_or(usual.grace, |grace| grace.0),
            on_lost: self.on_lost.into(),
            cancel: usual.cancel,
            connections: self.connections.map_or(usual.connections, Into::into),
            describes_itself: false,
            window: usual.window,
        }
    }

    pub fn owner(&self) -> Result<FullName, String> {
        self.owner.as_deref().map_or_else(|| Ok(FullName::owner()), FullName::parse)
    }

    pub fn check(&self) -> Result<()> {
        match (self.kind, &self.script) {
            (kind, Some(_)) if kind != Kind::Script => {
                bail!("script: only a script agent takes a script; say 'kind: script'")
            }
            (Kind::Script, None) => bail!("a script agent needs 'script:' (docs/script-agent.md shows how)"),
            _ => {}
        }
        let of_sockets = [self.ttl.is_some(), self.grace.is_some(), self.connections.is_some()];
        if self.kind != Kind::Socket && of_sockets.contains(&true) {
            bail!("ttl, grace and connections are for agents that connect by themselves; say 'kind: socket'");
        }
        if let Some(ttl) = self.ttl {
            check_ttl("ttl", ttl)?;
        }
        let owner = self.owner().map_err(|problem| anyhow::anyhow!("owner: {problem}"))?;
        if owner.is_anonymous() {
            bail!("owner: 'anonymous' is everyone without a key, and owns nothing");
        }
        if let Some(script) = &self.script
            && let Err(error) = Script::compile(script)
        {
            bail!("script.{error}");
        }
        self.check_remote()?;
        self.check_command()?;
        self.check_acp()?;
        self.check_codex()?;
        self.check_claude()?;
        let modes = [&self.input_modes, &self.output_modes].into_iter().flatten();
        if modes.clone().any(Vec::is_empty) {
            bail!("input_modes and output_modes must each name a media type; '*/*' takes all");
        }
        if let Some(wrong) = modes.flatten().find(|mode| !mode.contains('/')) {
            bail!("'{wrong}' is no media type: write one such as text/plain, image/* or */*");
        }
        // A card is signed, and such a number reads differently in different places.
        for extension in self.extensions.iter().filter_map(|extension| extension.params.as_ref()) {
            let text = serde_json::to_string(extension)?;
            canonical::read(&text).map_err(|problem| anyhow::anyhow!("extensions: params: {problem}"))?;
        }
        if let Some(extended) = &self.extended {
            extended.check(self)?;
        }
        Ok(())
    }
}

impl ExtendedConfig {
    /// A card that is declared and says nothing more would be a promise that is not kept.
    fn check(&self, public: &AgentConfig) -> Result<()> {
        if self == &Self::default() {
            bail!(
                "extended: says nothing beyond the public card; write a description, skills or a contact, or remove it"
            );
        }
        for (name, url) in [
            ("documentation_url", self.documentation_url.as_ref()),
            ("provider.url", self.provider.as_ref().map(|provider| &provider.url)),
        ] {
            if url.is_some_and(|url| !url.starts_with("http://") && !url.starts_with("https://")) {
                bail!("extended.{name}: must be an http or https URL");
            }
        }
        if let Some(twice) = self.skills.iter().find(|skill| public.skills.iter().any(|known| known.id == skill.id)) {
            bail!("extended.skills: '{}' is a skill of the public card already", twice.id);
        }
        Ok(())
    }
}
