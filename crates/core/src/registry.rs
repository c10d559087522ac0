//! The agents this hub knows, by name.

use crate::caller::Caller;
use crate::ids::{AgentId, PrincipalId, WorkspaceId};
use crate::ports::Link;
use flotilla_protocol::a2a::card::{AgentCapabilities, AgentSkill};
use flotilla_protocol::a2a::error::{Reason, Refusal};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Names no agent may have: they are first segments of the hub's own paths.
const RESERVED: [&str; 17] = [
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
];

/// Whether an agent may have this name: it is a path segment, a tenant and a word people type.
pub fn check_name(name: &str) -> Result<(), String> {
    if RESERVED.contains(&name) {
        return Err(format!("'{name}' is a path of the hub itself; choose another name"));
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

/// What an agent's own card says of it, for an agent elsewhere.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Face {
    pub description: String,
    pub skills: Vec<AgentSkill>,
    pub input_modes: Vec<String>,
    pub output_modes: Vec<String>,
    pub streaming: bool,
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
    pub dedupe: DedupeBy,
    pub on_lost: OnLost,
    pub link: Arc<dyn Link>,
}

impl Agent {
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

#[derive(Default, Clone)]
pub struct Registry {
    agents: BTreeMap<String, Arc<Agent>>,
    default: Option<String>,
}

impl Registry {
    pub fn new(agents: impl IntoIterator<Item = Agent>, default: Option<String>) -> Self {
        let agents = agents.into_iter().map(|agent| (agent.name.clone(), Arc::new(agent))).collect();
        Self { agents, default }
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
        self.agents.values().find(|agent| agent.id == id)
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
            Some(name) => self.agents.get(name),
            None => self.default_agent(),
        };
        agent.filter(|agent| agent.is_seen_by(caller)).ok_or_else(|| self.unknown(caller, named))
    }

    /// An agent the caller does not see is not there for them.
    fn unknown(&self, caller: &Caller, named: Option<&str>) -> Refusal {
        let callable = self.agents.values().filter(|agent| agent.is_seen_by(caller));
        let callable: Vec<&str> = callable.map(|agent| agent.name.as_str()).collect();
        let have = if callable.is_empty() { "none".to_owned() } else { callable.join(", ") };
        let text = match named {
            Some(name) => format!("There is no agent '{name}' here. Agents you can call: {have}."),
            None => format!("Name an agent, by path (/agents/NAME) or as tenant. Agents you can call: {have}."),
        };
        Refusal::new(Reason::AgentNotFound, text)
    }
}
