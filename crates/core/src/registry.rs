//! The agents this hub knows, by name.

mod added;
mod departed;
mod face;
mod proven;
mod pulse;
mod search;

pub use added::{Added, Keeping, Source};
pub use departed::{Departed, GONE};
pub use face::{Face, LeftOpen, Signed, Word};
pub use proven::Proven;
pub use pulse::{Liveness, PATIENCE, Pulse};
pub use search::{Found, Search, takes_or_makes};

use crate::caller::Caller;
use crate::fleet::FLEET;
use crate::ids::{AgentId, PrincipalId, WorkspaceId};
use crate::map::IdMap;
use crate::ports::Link;
use flotilla_protocol::a2a::card::{AgentCapabilities, AgentExtension, AgentProvider, AgentSkill};
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::a2a::profile::Profile;
use flotilla_protocol::a2a::{PUSH_OPTIONS, STREAM_RESUME, VERSION};
use flotilla_protocol::lineage::ANCESTRY;
use flotilla_protocol::time::Millis;
use flotilla_protocol::v03;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Names no agent may have: they are segments of the hub's own paths, or stand for all workers.
const RESERVED: [&str; 20] = [
    "agents",
    "api",
    "v1",
    "a2a",
    "jsonrpc",
    "rpc",
    "ws",
    "mcp",
    "mesh",
    "console",
    "schemas",
    "tasks",
    "metrics",
    "healthz",
    "readyz",
    "message",
    "extendedAgentCard",
    FLEET,
    "any",
    "stream",
];

/// How many agents a refusal names.
const NAMED: usize = 20;

/// Whether an agent may have this name: it is a path segment, a tenant and a word people type.
pub fn check_name(name: &str) -> Result<(), String> {
    if RESERVED.contains(&name) {
        return Err(format!("'{name}' is a name of the hub's own; choose another name"));
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > 64 || !name.chars().all(fits) || name.starts_with(['.', '-']) {
        return Err(format!(
            "'{name}' cannot be an agent's name: use 1 to 64 letters, digits, '-', '_' and '.', starting with a letter, \
             a digit or '_'"
        ));
    }
    Ok(())
}

/// What makes two sends the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DedupeBy {
    /// The message id, or the header where one is given.
    MessageId,
    /// The `Idempotency-Key` header only.
    Header,
}

/// What becomes of a started run that is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnLost {
    Fail,
    Retry,
}

/// Who an agent is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// Its owner.
    Private,
    /// Everyone in its owner's workspace.
    Workspace,
    /// Everyone with a key, and those without where anonymous access is on. Its card is for all.
    Public,
}

impl Visibility {
    pub const ALL: [Self; 3] = [Self::Private, Self::Workspace, Self::Public];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Workspace => "workspace",
            Self::Public => "public",
        }
    }
}

/// What callers with a key learn of an agent beyond its public card.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Extended {
    /// In the place of the public one.
    pub description: Option<String>,
    /// Beside the public ones.
    pub skills: Vec<AgentSkill>,
    pub documentation_url: Option<String>,
    pub provider: Option<AgentProvider>,
    /// Whom to ask about the agent.
    pub contact: Option<String>,
}

/// An agent: what its card says, how it is treated, and how it is reached.
#[derive(Clone)]
pub struct Agent {
    pub id: AgentId,
    pub name: String,
    pub owner: PrincipalId,
    /// Its owner's.
    pub workspace: WorkspaceId,
    pub visibility: Visibility,
    pub description: String,
    pub version: String,
    pub capabilities: AgentCapabilities,
    pub input_modes: Vec<String>,
    pub output_modes: Vec<String>,
    /// Whether what does not fit the modes is refused here, before the agent sees it.
    pub checks_modes: bool,
    pub skills: Vec<AgentSkill>,
    /// None if the public card says all there is.
    pub extended: Option<Extended>,
    pub dedupe: DedupeBy,
    pub on_lost: OnLost,
    /// The versions of A2A it speaks itself; callers may speak any the hub does.
    pub versions: Vec<String>,
    /// What its own card may say of it.
    pub left_open: LeftOpen,
    pub source: Source,
    pub link: Arc<dyn Link>,
}

/// The versions of A2A that agents in the hub, and those that dial in, are spoken to in.
pub fn hub_versions() -> Vec<String> {
    [VERSION, v03::VERSION].map(str::to_owned).to_vec()
}

impl Agent {
    /// Whether it is called where it is, and does not dial in.
    pub fn is_elsewhere(&self) -> bool {
        self.link.is_remote() && self.link.dialed().is_none() && self.name != FLEET
    }

    /// Whether its card says this of it already.
    pub fn says(&self, profile: &Profile) -> bool {
        let Profile { capabilities, version, default_input_modes, default_output_modes, .. } = profile;
        let described =
            if profile.description.is_empty() { self.default_description() } else { profile.description.clone() };
        self.description == described
            && self.version == *version
            && self.capabilities.streaming == capabilities.streaming
            && self.capabilities.push_notifications == capabilities.push_notifications
            && self.input_modes == *default_input_modes
            && self.output_modes == *default_output_modes
            && self.skills == profile.skills(&self.name, &described)
    }

    fn default_description(&self) -> String {
        format!("The agent {}.", self.name)
    }

    /// Whether a caller may see how it is reached and all it does.
    pub fn is_owned_by(&self, caller: &Caller) -> bool {
        caller.rights.is_admin() || (!caller.is_anonymous() && caller.principal == self.owner)
    }

    /// Whether it is there for a caller; otherwise it must look as if it did not exist. Whoever administers the hub
    /// sees all agents.
    pub fn is_seen_by(&self, caller: &Caller) -> bool {
        let visible = match self.visibility {
            Visibility::Public => true,
            _ if caller.rights.is_admin() => true,
            Visibility::Workspace => !caller.is_anonymous() && caller.workspace == self.workspace,
            Visibility::Private => !caller.is_anonymous() && caller.principal == self.owner,
        };
        visible && caller.may_call(&self.name)
    }
}

/// An agent that registered itself, as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Registration {
    pub name: String,
    pub owner: PrincipalId,
    /// Its owner's.
    pub workspace: WorkspaceId,
    pub visibility: Visibility,
    /// What it last said of itself.
    pub profile: Profile,
    pub at: Millis,
}

impl Registration {
    /// The agent it is, once it has its number and a way to reach it.
    pub fn agent(&self, id: AgentId, on_lost: OnLost, link: Arc<dyn Link>) -> Agent {
        let Profile { capabilities, .. } = &self.profile;
        let description = match self.profile.description.as_str() {
            "" => format!("The agent {}.", self.name),
            said => said.to_owned(),
        };
        Agent {
            id,
            name: self.name.clone(),
            owner: self.owner,
            workspace: self.workspace,
            visibility: self.visibility,
            version: self.profile.version.clone(),
            capabilities: hub_capabilities(capabilities.streaming, capabilities.push_notifications),
            input_modes: self.profile.default_input_modes.clone(),
            output_modes: self.profile.default_output_modes.clone(),
            skills: self.profile.skills(&self.name, &description),
            checks_modes: true,
            extended: None,
            description,
            dedupe: DedupeBy::MessageId,
            on_lost,
            versions: hub_versions(),
            left_open: LeftOpen::default(),
            source: Source::Registered,
            link,
        }
    }
}

/// What the hub adds to what an agent can do.
pub fn hub_capabilities(streaming: bool, push_notifications: bool) -> AgentCapabilities {
    let extension = |uri: &str, description: &str| AgentExtension {
        uri: uri.into(),
        description: description.into(),
        required: false,
        params: None,
    };
    let text = "A request's metadata may say whom it is made for and until when: chain, hops, maxHops, deadline. \
                Rings, long chains and work that is too late are rejected.";
    let mut extensions = vec![extension(ANCESTRY, text)];
    if streaming {
        let text =
            "Streams carry event ids; send the last one as Last-Event-ID to SubscribeToTask to go on without a gap.";
        extensions.push(extension(STREAM_RESUME, text));
    }
    if push_notifications {
        let text = "A push config's metadata may say which events its webhook is told, and how: events (all, status), \
                    chunks (each, whole), hubSignature.";
        extensions.push(extension(PUSH_OPTIONS, text));
    }
    AgentCapabilities { streaming, push_notifications, extensions, extended_agent_card: false }
}

#[derive(Clone, Default)]
pub struct Registry {
    agents: BTreeMap<String, Arc<Agent>>,
    names: IdMap<AgentId, String>,
    default: Option<String>,
    /// Agents that are gone, for those who have tasks with them.
    departed: BTreeMap<String, Arc<Agent>>,
    /// An agent that has tasks, and is not shown to anybody yet.
    hidden: Option<Arc<Agent>>,
}

impl Registry {
    pub fn new(agents: impl IntoIterator<Item = Agent>, default: Option<String>) -> Self {
        let mut registry = Self { default, ..Self::default() };
        for agent in agents {
            registry.insert(Arc::new(agent));
        }
        registry
    }

    /// Adds an agent, or puts it in the place of one of the same name.
    pub fn insert(&mut self, agent: Arc<Agent>) {
        self.names.insert(agent.id, agent.name.clone());
        self.departed.remove(&agent.name);
        self.agents.insert(agent.name.clone(), agent);
    }

    /// Takes an agent out; its tasks stay in the log.
    pub fn remove(&mut self, name: &str) {
        if let Some(agent) = self.agents.remove(name).or_else(|| self.departed.remove(name)) {
            self.names.remove(&agent.id);
        }
    }

    pub fn agents(&self) -> impl Iterator<Item = &Arc<Agent>> {
        self.agents.values()
    }

    /// The registry with another in the place of an agent, if it is still reached by the same link.
    pub fn with(&self, agent: Agent) -> Option<Self> {
        let known = self.agents.get(&agent.name).is_some_and(|known| Arc::ptr_eq(&known.link, &agent.link));
        known.then(|| {
            let mut changed = self.clone();
            changed.agents.insert(agent.name.clone(), Arc::new(agent));
            changed
        })
    }

    pub fn by_name(&self, name: &str) -> Option<&Arc<Agent>> {
        self.agents.get(name)
    }

    pub fn by_id(&self, id: AgentId) -> Option<&Arc<Agent>> {
        let hidden = self.hidden.as_ref().filter(|hidden| hidden.id == id);
        let known = self.names.get(&id).and_then(|name| self.agents.get(name).or_else(|| self.departed.get(name)));
        known.or(hidden)
    }

    /// Keeps an agent for the tasks it has, without showing it.
    pub fn hide(&mut self, agent: Arc<Agent>) {
        self.hidden = Some(agent);
    }

    pub fn show_hidden(&mut self) {
        if let Some(agent) = self.hidden.clone() {
            self.insert(agent);
        }
    }

    /// Takes the hidden agent over from another registry, shown if it is shown there.
    pub fn keep_hidden(&mut self, other: &Self) {
        self.hidden.clone_from(&other.hidden);
        if self.hidden.as_ref().is_some_and(|hidden| other.agents.contains_key(&hidden.name)) {
            self.show_hidden();
        }
    }

    pub fn default_agent(&self) -> Option<&Arc<Agent>> {
        self.agents.get(self.default.as_deref()?)
    }

    /// The agent a request is for: by path, by tenant, or the default one. Both named must agree.
    pub fn resolve(&self, caller: &Caller, path: Option<&str>, tenant: &str) -> Result<&Arc<Agent>, Refusal> {
        let named = match path {
            Some(path) if !tenant.is_empty() && tenant != path => {
                let text = format!("the request names the agent '{path}' beside it, so it must be absent or the same");
                return Err(Refusal::invalid("tenant", text));
            }
            Some(path) => Some(path),
            None if !tenant.is_empty() => Some(tenant),
            None => None,
        };
        let agent = match named {
            Some(name) => self.agents.get(name).or_else(|| self.departed.get(name)),
            None => self.default_agent(),
        };
        agent.filter(|agent| agent.is_seen_by(caller)).ok_or_else(|| self.unknown(caller, named))
    }

    /// An agent the caller does not see is not there for them.
    fn unknown(&self, caller: &Caller, named: Option<&str>) -> Refusal {
        let callable = self.agents.values().filter(|agent| agent.is_seen_by(caller));
        let callable: Vec<&str> = callable.map(|agent| agent.name.as_str()).collect();
        let have = match callable.len() {
            0 => "none".to_owned(),
            few if few <= NAMED => callable.join(", "),
            many => format!("{} and {} more", callable[..NAMED].join(", "), many - NAMED),
        };
        let text = match named {
            Some(name) => format!("There is no agent '{name}' here. Agents you can call: {have}."),
            None => format!("Name an agent, by path (/agents/NAME) or as tenant. Agents you can call: {have}."),
        };
        Refusal::new(Reason::AgentNotFound, text)
    }
}
