//! The registry as its owners change it: agents are added, changed, removed and looked for, at once and for good.

use super::Hub;
use super::register::was_anothers;
use crate::caller::Caller;
use crate::error::Error;
use crate::key::FullName;
use crate::ports::{Asked, Discovered, Plan, Scout};
use crate::registry::{Added, Agent, Found, GONE, Keeping, Liveness, Pulse, Search, Source, Visibility, check_name};
use crate::rights::Right;
use flotilla_protocol::a2a::error::{Reason, Refusal};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::MutexGuard;

/// How an agent's settings change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed<'a> {
    /// These are all of them.
    Whole(&'a str),
    /// Those that are named (RFC 7396).
    Some(&'a str),
}

impl Hub {
    /// Who looks for agents elsewhere. Said once.
    pub fn send_out(&self, scout: Arc<dyn Scout>) {
        let _ = self.scout.set(scout);
    }

    pub fn keeping(&self) -> Arc<Keeping> {
        self.keeping.load_full()
    }

    pub fn replace_keeping(&self, keeping: Keeping) {
        self.keeping.store(Arc::new(keeping));
        self.vigil.wake();
    }

    /// Held while the registry is made anew, so that nothing that is added meanwhile is lost.
    pub async fn keep_registry(&self) -> MutexGuard<'_, ()> {
        self.roster.registering.lock().await
    }

    /// The agent as it then is.
    pub(super) fn put_in(&self, agent: &Arc<Agent>) -> Arc<Agent> {
        self.registry.rcu(|registry| {
            let mut registry = (**registry).clone();
            registry.insert(self.vigil.as_known(agent));
            self.depart_if_over(&mut registry, agent);
            registry
        });
        self.vigil.wake();
        self.vigil.as_known(agent)
    }

    pub(super) fn scout(&self) -> Result<&Arc<dyn Scout>, Refusal> {
        let text = "This hub looks for no agents elsewhere.";
        self.scout.get().ok_or_else(|| Refusal::new(Reason::UnsupportedOperation, text))
    }

    /// Settings of an agent that was added, as its owner may see them.
    pub fn shown_settings(&self, agent: &Agent) -> Option<String> {
        Some(self.scout.get()?.shown(&agent.source.added()?.settings))
    }

    /// A page of the agents a caller sees.
    pub fn find_agents(&self, caller: &Caller, search: &Search) -> Result<Found, Refusal> {
        caller.check(Right::AgentsRead)?;
        Ok(self.registry.load().search(caller, search, |agent| self.liveness(agent)))
    }

    /// One agent a caller sees.
    pub fn see_agent(&self, caller: &Caller, name: &str) -> Result<Arc<Agent>, Refusal> {
        caller.check(Right::AgentsRead)?;
        self.registry.load().resolve(caller, Some(name), "").cloned()
    }

    /// Looks at an agent of the caller's at once; what it came to.
    pub async fn check_agent(self: &Arc<Self>, caller: &Caller, name: &str) -> Result<(Pulse, Liveness), Error> {
        let agent = self.see_agent(caller, name)?;
        if !agent.is_owned_by(caller) {
            return Err(not_yours(name).into());
        }
        if self.liveness(&agent) == Liveness::Gone {
            let text = format!("{GONE} It is looked at again when it is announced again.");
            return Err(Refusal::new(Reason::UnsupportedOperation, text).into());
        }
        if agent.link.believed().is_none() {
            let text = match agent.link.presence() {
                Some(_) => format!("'{name}' dials in: it is {} now.", self.liveness(&agent).name()),
                None => format!("'{name}' works in the hub itself, and is there as long as the hub is."),
            };
            return Err(Refusal::new(Reason::UnsupportedOperation, text).into());
        }
        let pulse = self.look_at(&agent).await?;
        Ok((pulse, self.liveness(&agent)))
    }

    /// Adds an agent that is elsewhere. It is there at once, and after a restart. What was found of its card counts from
    /// the beginning.
    pub async fn add_agent(
        self: &Arc<Self>,
        caller: &Caller,
        name: &str,
        said: &str,
        verified: bool,
    ) -> Result<Arc<Agent>, Error> {
        self.enter(caller, name, said, verified, None).await
    }

    /// Adds an agent for as long as a lease of this term is extended, or for good.
    pub(super) async fn enter(
        self: &Arc<Self>,
        caller: &Caller,
        name: &str,
        said: &str,
        verified: bool,
        term: Option<Duration>,
    ) -> Result<Arc<Agent>, Error> {
        caller.check(Right::AgentsWrite)?;
        check_name(name).map_err(|problem| Refusal::invalid("name", problem))?;
        let scout = Arc::clone(self.scout()?);
        let plan = scout.plan(None, said)?;
        self.may_plan(caller, &plan)?;
        if !caller.may_call(name) {
            let text = format!("Your key is limited to other agents than '{name}'.");
            return Err(Refusal::new(Reason::PermissionDenied, text).into());
        }
        scout.judge(&plan.settings).await??;
        let owner = match &plan.owner {
            None => (caller.principal, caller.workspace),
            Some(owner) => self.principal_named(owner).await?,
        };
        let _alone = self.keep_registry().await;
        if let Some(known) = self.registry.load().by_name(name) {
            return Err(taken(caller, known).into());
        }
        self.check_room(owner.0)?;
        let now = self.clock.now();
        let added = Added {
            name: name.to_owned(),
            owner: owner.0,
            workspace: owner.1,
            settings: plan.settings,
            at: now,
            changed_at: now,
        };
        let agent = self.keep_added(caller, &*scout, added, verified).await?;
        self.settle_lease(agent.id, term).await?;
        let agent = self.put_in(&agent);
        tracing::info!(agent = name, by = %caller.name, "agent added");
        Ok(agent)
    }

    /// Changes an agent that was added. Runs under way go on as they began.
    pub async fn change_agent(
        self: &Arc<Self>,
        caller: &Caller,
        name: &str,
        changed: Changed<'_>,
    ) -> Result<Arc<Agent>, Error> {
        caller.check(Right::AgentsWrite)?;
        let scout = Arc::clone(self.scout()?);
        let before = self.own_added(caller, name)?;
        let plan = match changed {
            Changed::Whole(said) => scout.plan(None, said)?,
            Changed::Some(said) => scout.plan(Some(&before.settings), said)?,
        };
        self.may_plan(caller, &plan)?;
        scout.judge(&plan.settings).await??;
        let (owner, workspace) = match &plan.owner {
            None => (before.owner, before.workspace),
            Some(owner) => self.principal_named(owner).await?,
        };
        let _alone = self.keep_registry().await;
        // Somebody else may have been faster.
        let before = self.own_added(caller, name)?;
        let changed_at = self.clock.now();
        let added = Added { owner, workspace, settings: plan.settings, changed_at, ..(*before).clone() };
        let agent = self.keep_added(caller, &*scout, added, false).await?;
        let agent = self.put_in(&agent);
        tracing::info!(agent = name, by = %caller.name, "agent changed");
        Ok(agent)
    }

    async fn keep_added(
        &self,
        caller: &Caller,
        scout: &dyn Scout,
        added: Added,
        verified: bool,
    ) -> Result<Arc<Agent>, Error> {
        let before = self.registry.load().by_name(&added.name).cloned();
        let mut agent = scout.build(&added, before.as_deref())?;
        let Some(id) = self.store.keep_added(added.clone(), caller.rights.is_admin()).await? else {
            return Err(was_anothers(&added.name).into());
        };
        if verified {
            scout.proved(&added).await?;
        }
        agent.id = id;
        Ok(Arc::new(agent))
    }

    /// Removes an agent that was added, or that registered itself. Its tasks stay in the log.
    pub async fn remove_agent(self: &Arc<Self>, caller: &Caller, name: &str, force: bool) -> Result<(), Error> {
        caller.check(Right::AgentsWrite)?;
        let _alone = self.keep_registry().await;
        let agent = self.registry.load().resolve(caller, Some(name), "").cloned()?;
        if let Source::Configured(place) = &agent.source {
            return Err(configured(caller, name, place).into());
        }
        if !agent.is_owned_by(caller) {
            return Err(not_yours(name).into());
        }
        if agent.link.presence().is_some_and(|presence| presence.connections > 0) {
            let text = format!("'{name}' is connected, and would register itself again. Stop it first.");
            return Err(Refusal::new(Reason::UnsupportedOperation, text).into());
        }
        let open = self.store.open_with(agent.id).await?;
        if open > 0 && !force {
            let text = format!(
                "{open} of the tasks with '{name}' have not ended. Cancel them, let them end, or remove the agent all \
                 the same with force=true: what it works on goes on, and what waits for an answer keeps waiting."
            );
            return Err(Refusal::new(Reason::UnsupportedOperation, text).fact("openTasks", open.to_string()).into());
        }
        self.store.remove_agent(agent.id).await?;
        self.leases.forget(agent.id);
        if let Some(scout) = self.scout.get() {
            scout.forget(name);
        }
        self.registry.rcu(|registry| {
            let mut registry = (**registry).clone();
            registry.remove(name);
            registry
        });
        self.vigil.wake();
        tracing::info!(agent = name, by = %caller.name, open, "agent removed");
        Ok(())
    }

    /// Looks for an agent at an address that the caller names.
    pub async fn discover(&self, caller: &Caller, asked: Asked) -> Result<Discovered, Error> {
        caller.check(Right::AgentsWrite)?;
        let scout = self.scout()?;
        if let Some(auth) = &asked.auth {
            self.may_name(caller, &scout.references(auth)?)?;
        }
        let Ok(_place) = self.vigil.searches.try_acquire() else {
            let text = "Too many searches for agents are under way. Try again in a moment.";
            return Err(Refusal::new(Reason::ResourceExhausted, text).into());
        };
        Ok(scout.discover(asked).await??)
    }

    /// Whether a caller may have an agent that is like this.
    fn may_plan(&self, caller: &Caller, plan: &Plan) -> Result<(), Refusal> {
        self.may_name(caller, &plan.references)?;
        if caller.rights.is_admin() {
            return Ok(());
        }
        let denied = |text: &str| Err(Refusal::new(Reason::PermissionDenied, text));
        if plan.owner.is_some() {
            return denied("Only a key with the scope admin may give an agent to somebody else. Leave 'owner' out.");
        }
        if plan.visibility == Visibility::Public {
            return denied(
                "Only a key with the scope admin may make an agent public. Say 'workspace' or 'private' as visibility.",
            );
        }
        Ok(())
    }

    /// A secret of the hub's is sent wherever the agent's address leads.
    fn may_name(&self, caller: &Caller, references: &[String]) -> Result<(), Refusal> {
        let Some(first) = references.first() else { return Ok(()) };
        if !caller.rights.is_admin() {
            let text = format!("Only a key with the scope admin may have a secret of the hub's sent ({first}).");
            return Err(Refusal::new(Reason::PermissionDenied, text));
        }
        let keeping = self.keeping.load();
        match references.iter().find(|reference| !keeping.may_name(reference)) {
            None => Ok(()),
            Some(reference) => {
                let may = keeping.references.join(", ");
                let text = format!(
                    "'{reference}' is none of the secrets that agents added over the API may name ({may}). Add it to \
                     registry.references in the hub's configuration."
                );
                Err(Refusal::invalid("auth", text))
            }
        }
    }

    fn check_room(&self, owner: crate::ids::PrincipalId) -> Result<(), Refusal> {
        let (registry, keeping) = (self.registry.load(), self.keeping.load());
        let added = || registry.agents().filter(|agent| agent.source.added().is_some());
        let (all, own) = (added().count(), added().filter(|agent| agent.owner == owner).count());
        for (count, most, name) in
            [(all, keeping.most, "registry.most"), (own, keeping.most_per_owner, "registry.most_per_owner")]
        {
            if count >= most {
                let text = format!("As many agents are added as may be ({most}, {name}). Remove one first.");
                return Err(Refusal::new(Reason::ResourceExhausted, text));
            }
        }
        Ok(())
    }

    async fn principal_named(&self, owner: &str) -> Result<(crate::ids::PrincipalId, crate::ids::WorkspaceId), Error> {
        let name = FullName::parse(owner).map_err(|problem| Refusal::invalid("owner", problem))?;
        if name.is_anonymous() {
            return Err(Refusal::invalid("owner", "'anonymous' is everyone without a key, and owns nothing").into());
        }
        let principal = self.store.principal(name).await?;
        Ok((principal.id, principal.workspace))
    }

    /// What is kept of an agent that a caller may change.
    fn own_added(&self, caller: &Caller, name: &str) -> Result<Arc<Added>, Refusal> {
        let agent = self.registry.load().resolve(caller, Some(name), "").cloned()?;
        match &agent.source {
            Source::Configured(place) => Err(configured(caller, name, place)),
            _ if !agent.is_owned_by(caller) => Err(not_yours(name)),
            Source::Registered => {
                let text = format!("'{name}' registered itself, and says what it is when it connects.");
                Err(Refusal::new(Reason::UnsupportedOperation, text))
            }
            Source::Added(added) => Ok(Arc::clone(added)),
        }
    }
}

fn taken(caller: &Caller, known: &Agent) -> Refusal {
    match &known.source {
        Source::Configured(place) if known.is_seen_by(caller) => configured(caller, &known.name, place),
        _ => {
            let text = format!("The name '{}' belongs to another agent. Choose another name.", known.name);
            Refusal::new(Reason::AlreadyExists, text)
        }
    }
}

/// Where a file is on the hub's machine is for those who administer it.
fn configured(caller: &Caller, name: &str, place: &str) -> Refusal {
    let place = if caller.rights.is_admin() { place } else { "the hub's configuration" };
    let text = format!("'{name}' is in {place}. Change it there; the hub reads its configuration again on SIGHUP.");
    Refusal::new(Reason::AlreadyExists, text)
}

fn not_yours(name: &str) -> Refusal {
    let text = format!("'{name}' belongs to somebody else. Its owner, or the hub's, may do that.");
    Refusal::new(Reason::PermissionDenied, text)
}
