//! Workers, as callers and owners deal with them: announcing, looking, draining.

use super::Hub;
use crate::caller::{Caller, Scope};
use crate::error::{Error, Fault};
use crate::fleet::{Announced, FLEET, Fleet, Seen, Via, extension, virtual_agent};
use crate::key::FullName;
use crate::notice::{Notice, What};
use crate::registry::Agent;
use crate::rights::Right;
use flotilla_protocol::a2a::card::AgentExtension;
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::fleet::{Announce, HANDSHAKE};
use std::sync::Arc;
use std::time::Duration;

impl Hub {
    pub fn fleet(&self) -> &Fleet {
        &self.fleet
    }

    /// Founds the agent that stands for all workers. It is shown once there is one, or somebody has dispatched.
    pub async fn found_fleet(self: &Arc<Self>) -> Result<(), Fault> {
        let owner = self.store.principal(FullName::owner()).await?;
        let id = self.store.agent(FLEET, owner.id).await?;
        let agent = Arc::new(virtual_agent(id, owner.id, owner.workspace));
        self.registry.rcu(|registry| {
            let mut registry = (**registry).clone();
            registry.hide(Arc::clone(&agent));
            registry
        });
        if self.store.had_tasks(id).await? {
            self.show_fleet();
        }
        self.restore_fleet().await
    }

    /// Lets callers see the agent that stands for all workers; whether they did not before.
    pub fn show_fleet(&self) -> bool {
        if self.registry.load().by_name(FLEET).is_some() {
            return false;
        }
        self.registry.rcu(|registry| {
            let mut registry = (**registry).clone();
            registry.show_hidden();
            registry
        });
        true
    }

    /// What an agent understands beside A2A itself: one that takes dispatches says so, once it has announced itself.
    pub fn extensions(&self, agent: &Agent) -> Vec<AgentExtension> {
        let mut extensions = agent.capabilities.extensions.clone();
        if self.reads_texts(agent) && !extensions.iter().any(|known| known.uri == HANDSHAKE) {
            extensions.push(extension());
        }
        extensions
    }

    /// Takes up the workers that announced themselves before the hub's start.
    async fn restore_fleet(self: &Arc<Self>) -> Result<(), Fault> {
        let kept = self.store.workers().await?;
        self.fleet.restore(kept, &self.registry(), self.clock.now());
        if !self.fleet.is_empty() {
            self.show_fleet();
        }
        self.look_at_workers();
        self.look_at_allowances().await;
        Ok(())
    }

    /// An agent says what it is and has now. Older word than what is known changes nothing, and is told so.
    pub async fn announce_worker(
        self: &Arc<Self>,
        agent: &Arc<Agent>,
        announce: Announce,
        via: Via,
    ) -> Result<Announced, Error> {
        if agent.name == FLEET {
            return Err(not_a_worker(FLEET).into());
        }
        let _alone = self.fleet.keeping.lock().await;
        let announced = self.fleet.announce(agent, announce, via, self.clock.now());
        self.show_fleet();
        self.look_at_workers();
        if announced.news
            && let Some(kept) = self.fleet.kept(&agent.name)
        {
            self.store.keep_worker(kept).await?;
            self.look_at_allowances().await;
        }
        Ok(announced)
    }

    /// The agent a caller announces over HTTP: one it owns, or that its key was made for.
    pub fn announcing(&self, caller: &Caller, asked: &str) -> Result<Arc<Agent>, Refusal> {
        caller.check(Right::AgentsConnect)?;
        let named = caller.agents.as_deref().is_some_and(|allowed| allowed.iter().any(|name| name == asked));
        let agent = self.registry().by_name(asked).cloned();
        let own = |agent: &Arc<Agent>| named || agent.owner == caller.principal || caller.rights.is_admin();
        agent.filter(|agent| own(agent) && caller.may_call(&agent.name)).ok_or_else(|| {
            let text = format!(
                "There is no agent '{asked}' of yours here. Name one with ?agent=NAME: one that is configured with you \
                 as its owner, or has connected with your key."
            );
            Refusal::new(Reason::AgentNotFound, text)
        })
    }

    /// The workers a caller owns, all of them for whoever administers the hub.
    pub fn workers(&self, caller: &Caller) -> Vec<Seen> {
        let mut seen = self.fleet.seen(&self.registry(), self.clock.now());
        seen.retain(|seen| self.owns(caller, seen));
        seen
    }

    pub fn worker(&self, caller: &Caller, name: &str) -> Result<Seen, Refusal> {
        let found = self.workers(caller).into_iter().find(|seen| *seen.worker.name == *name);
        found.ok_or_else(|| not_a_worker(name))
    }

    fn owns(&self, caller: &Caller, seen: &Seen) -> bool {
        let own = match caller.as_owner() {
            Scope::Admin => true,
            Scope::Agent { owner } => seen.owner == owner,
            Scope::Caller { .. } | Scope::Own { .. } => false,
        };
        own && caller.may_call(&seen.worker.name)
    }

    /// Lets a worker end what it has and take nothing new, or takes that back.
    pub async fn drain(self: &Arc<Self>, caller: &Caller, name: &str, draining: bool) -> Result<Seen, Error> {
        caller.check(Right::TasksWrite)?;
        self.worker(caller, name)?;
        let _alone = self.fleet.keeping.lock().await;
        let kept = self.fleet.drain(name, draining).ok_or_else(|| not_a_worker(name))?;
        self.store.keep_worker(kept).await?;
        self.look_at_workers();
        Ok(self.worker(caller, name)?)
    }

    /// Ends the pause a worker and its account are under: somebody knows better than the worker that said so.
    pub async fn resume_worker(self: &Arc<Self>, caller: &Caller, name: &str) -> Result<Seen, Error> {
        caller.check(Right::TasksWrite)?;
        self.worker(caller, name)?;
        let resumed = self.fleet.resume(name);
        self.keep_workers(&resumed).await;
        self.look_at_workers();
        Ok(self.worker(caller, name)?)
    }

    /// Keeps what was seen of workers, so that it is known after a restart.
    pub(super) async fn keep_workers(&self, names: &[Arc<str>]) {
        let _alone = self.fleet.keeping.lock().await;
        for kept in names.iter().filter_map(|name| self.fleet.kept(name)) {
            if let Err(fault) = self.store.keep_worker(kept).await {
                tracing::error!(%fault, "what was seen of a worker is not kept");
            }
        }
    }

    /// Tells of workers whose health changed; when to look again.
    pub(crate) fn look_at_workers(self: &Arc<Self>) -> Option<Duration> {
        let now = self.clock.now();
        let registry = self.registry.load();
        let (changed, next) = self.fleet.changed(&registry, now);
        self.fleet.offer(&registry, now);
        for changed in changed {
            let what = What::Worker { worker: changed.worker, health: changed.health, epoch: changed.epoch };
            self.notices.tell(Notice { at: now, owner: changed.owner, agent: changed.agent, what });
        }
        let left = next?.0.saturating_sub(now.0);
        Some(Duration::from_millis(u64::try_from(left).unwrap_or(0)))
    }

    /// A connection of an agent came or went.
    pub fn connection_changed(self: &Arc<Self>) {
        self.fleet.stir();
    }
}

fn not_a_worker(name: &str) -> Refusal {
    let text = format!(
        "There is no worker '{name}' of yours here. A worker is an agent that announced itself (SESSION_ANNOUNCE); \
         GET /api/fleet lists yours."
    );
    Refusal::new(Reason::AgentNotFound, text)
}
