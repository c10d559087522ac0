//! Who is asking, and what that lets them see.

use crate::ids::{AgentId, PrincipalId, WorkspaceId};
use crate::key::ANONYMOUS;
use crate::ports::Digest;
use crate::rights::Rights;
use crate::task::Head;
use std::sync::Arc;

/// An authenticated caller. Identity comes only from the credential, never from an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    pub principal: PrincipalId,
    pub workspace: WorkspaceId,
    pub name: Arc<str>,
    /// Whom it stands for, within the workspace.
    pub principal_name: Arc<str>,
    /// What the credential is good for.
    pub rights: Rights,
    /// The only agents this credential may be used with; none means all the principal sees.
    pub agents: Option<Arc<[String]>>,
    /// The hash of the key that was shown.
    pub key: Option<Digest>,
}

impl Caller {
    pub fn anonymous() -> Self {
        Self {
            principal: PrincipalId::ANONYMOUS,
            workspace: WorkspaceId::DEFAULT,
            name: ANONYMOUS.into(),
            principal_name: ANONYMOUS.into(),
            rights: Rights::CALLER,
            agents: None,
            key: None,
        }
    }

    pub fn is_anonymous(&self) -> bool {
        self.principal == PrincipalId::ANONYMOUS
    }

    pub fn may_call(&self, agent: &str) -> bool {
        self.agents.as_ref().is_none_or(|allowed| allowed.iter().any(|name| name == agent))
    }

    /// The caller's own tasks with one agent: what every A2A operation sees, even for an admin.
    pub fn with_agent(&self, agent: AgentId) -> Scope {
        Scope::Caller { principal: self.principal, agent }
    }

    /// The owner's view: every task of the agents this principal owns.
    pub fn as_owner(&self) -> Scope {
        if self.rights.is_admin() { Scope::Admin } else { Scope::Agent { owner: self.principal } }
    }
}

/// Which tasks a query may touch. Every store query takes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The tasks one principal has with one agent.
    Caller { principal: PrincipalId, agent: AgentId },
    /// The tasks one principal has with any agent, for those who name a task alone.
    Own { principal: PrincipalId },
    /// The tasks of all agents one principal owns.
    Agent { owner: PrincipalId },
    /// All tasks: a hub admin, or the hub itself acting on a row it claimed.
    Admin,
}

impl Scope {
    pub fn sees(&self, head: &Head) -> bool {
        match *self {
            Self::Caller { principal, agent } => head.principal == principal && head.agent == agent,
            Self::Own { principal } => head.principal == principal,
            Self::Agent { owner } => head.owner == owner,
            Self::Admin => true,
        }
    }
}
