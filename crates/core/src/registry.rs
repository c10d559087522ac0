//! The agents this hub knows, by name.

use crate::caller::Caller;
use crate::ids::{AgentId, PrincipalId};
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

/// An agent: what its card says, how it is treated, and how it is reached.
pub struct Agent {
    pub id: AgentId,
    pub name: String,
    pub owner: PrincipalId,
    pub description: String,
    pub version: String,
    pub capabilities: AgentCapabilities,
    pub input_modes: Vec<String>,
    pub output_modes: Vec<String>,
    pub skills: Vec<AgentSkill>,
    pub dedupe: DedupeBy,
    pub on_lost: OnLost,
    pub link: Arc<dyn Link>,
}

#[derive(Default)]
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
        agent.filter(|agent| caller.may_call(&agent.name)).ok_or_else(|| self.unknown(caller, named))
    }

    /// An agent the caller may not call is not there for them.
    fn unknown(&self, caller: &Caller, named: Option<&str>) -> Refusal {
        let callable: Vec<&str> = self.agents.keys().map(String::as_str).filter(|name| caller.may_call(name)).collect();
        let have = if callable.is_empty() { "none".to_owned() } else { callable.join(", ") };
        let text = match named {
            Some(name) => format!("There is no agent '{name}' here. Agents you can call: {have}."),
            None => format!("Name an agent, by path (/agents/NAME) or as tenant. Agents you can call: {have}."),
        };
        Refusal::new(Reason::AgentNotFound, text)
    }
}
