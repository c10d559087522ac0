//! Who is asking, and what that lets them see.

use crate::ids::{AgentId, PrincipalId, WorkspaceId};
use crate::key::ANONYMOUS;
use crate::ports::Digest;
use crate::rights::{Right, Rights};
use crate::task::Head;
use flotilla_protocol::a2a::error::{Reason, Refusal};
use std::sync::Arc;

/// An authenticated caller. Identity comes only from the credential, never from an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    pub principal: PrincipalId,
    pub workspace: WorkspaceId,
    /// The name of the key that was shown, with its workspace.
    pub name: Arc<str>,
    /// The principal's name in the workspace.
    pub stands_for: Arc<str>,
    /// What the credential is good for.
    pub rights: Rights,
    /// The only agents this credential may be used with; none means all the principal sees.
    pub agents: Option<Arc<[String]>>,
    /// The hash of the key that was shown.
    pub key: Option<Digest>,
    /// The agent whose own connection it asks over: the hub's word, as the key may be this agent.
    pub agent: Option<Arc<str>>,
}

impl Caller {
    pub fn anonymous() -> Self {
        Self {
            principal: PrincipalId::ANONYMOUS,
            workspace: WorkspaceId::DEFAULT,
            name: ANONYMOUS.into(),
            stands_for: ANONYMOUS.into(),
            rights: Rights::CALLER,
            agents: None,
            key: None,
            agent: None,
        }
    }

    /// By which name others are told of it: an agent can be answered by its own, whatever its key is called.
    pub fn shown_as(&self) -> &str {
        self.agent.as_deref().unwrap_or(&self.name)
    }

    pub fn is_anonymous(&self) -> bool {
        self.principal == PrincipalId::ANONYMOUS
    }

    /// Refuses what the credential is not good for, with the key that would be.
    pub fn check(&self, right: Right) -> Result<(), Refusal> {
        if self.rights.has(right) {
            return Ok(());
        }
        let name = right.name();
        let text = if self.is_anonymous() {
            format!("This needs a key with the scope {name}, and you showed none. Ask the hub's owner for one.")
        } else {
            let missing = format!("Your key does not have the scope {name}, which this needs.");
            format!("{missing} The hub's owner makes one that has it with '{}'.", self.key_with(right))
        };
        Err(Refusal::new(Reason::PermissionDenied, text).fact("requiredScope", name))
    }

    /// The command that makes a key for the same principal, that is good for the same and one more.
    fn key_with(&self, right: Right) -> String {
        let workspace = self.name.split_once('/').map(|(workspace, _)| format!("{workspace}/")).unwrap_or_default();
        let (stands_for, scopes) = (&self.stands_for, self.rights.with(right).names().join(","));
        let mut command = format!("flotilla keys create {workspace}NAME --principal {stands_for} --scope {scopes}");
        // A key with the scope admin cannot be limited.
        for agent in self.agents.iter().filter(|_| right != Right::Admin).flat_map(|agents| agents.iter()) {
            command.push_str(&format!(" --agent {agent}"));
        }
        command
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
    /// Whose query it is; none of the hub's own and its admins'.
    pub fn principal(&self) -> Option<PrincipalId> {
        match self {
            Self::Caller { principal, .. } | Self::Own { principal } | Self::Agent { owner: principal } => {
                Some(*principal)
            }
            Self::Admin => None,
        }
    }

    pub fn sees(&self, head: &Head) -> bool {
        match *self {
            Self::Caller { principal, agent } => head.principal == principal && head.agent == agent,
            Self::Own { principal } => head.principal == principal,
            Self::Agent { owner } => head.owner == owner,
            Self::Admin => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Caller;
    use crate::ids::{PrincipalId, WorkspaceId};
    use crate::rights::{Right, Rights};

    #[test]
    fn who_lacks_a_scope_is_told_the_key_that_has_it_too() {
        let mut caller = Caller {
            principal: PrincipalId(7),
            workspace: WorkspaceId::DEFAULT,
            name: "laptop".into(),
            stands_for: "anna".into(),
            rights: Rights::of([Right::TasksRead, Right::TasksWrite]),
            agents: Some(["echo".to_owned()].into()),
            key: None,
            agent: None,
        };
        caller.check(Right::TasksRead).expect("it has that");
        let told = |caller: &Caller, right| caller.check(right).expect_err("it lacks that").message;
        let command = "keys create NAME --principal anna --scope tasks:read,tasks:write,push:write --agent echo'";
        assert!(told(&caller, Right::PushWrite).contains(command), "{}", told(&caller, Right::PushWrite));
        assert!(told(&caller, Right::Admin).ends_with("--scope tasks:read,tasks:write,admin'."));
        caller.name = "team/laptop".into();
        assert!(told(&caller, Right::PushWrite).contains("create team/NAME --principal anna"));
        assert!(told(&Caller::anonymous(), Right::Admin).contains("you showed none"));
    }
}
