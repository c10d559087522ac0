//! Agents that others announce: each has a lease, which a heartbeat extends. Without one it is stale, and then gone.

use super::Hub;
use crate::caller::Caller;
use crate::error::{Error, Fault};
use crate::hub::Changed;
use crate::ids::AgentId;
use crate::ports::Lease;
use crate::registry::{Agent, Departed, Registry, Source};
use crate::rights::Right;
use flotilla_protocol::a2a::error::{Reason, Refusal};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The shortest and the longest lease.
pub const SHORTEST: Duration = Duration::from_secs(1);
pub const LONGEST: Duration = Duration::from_secs(86_400);

/// How a lease stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It was extended in time; how long it still lasts.
    Held(Duration),
    /// It was not: the agent is stale.
    Late,
    /// The agent is gone. Its tasks can still be read.
    Over,
}

#[derive(Debug, Clone, Copy)]
struct Held {
    term: Duration,
    /// None if it is over.
    until: Option<Instant>,
}

impl Held {
    fn stands(&self, now: Instant) -> Standing {
        match self.until {
            None => Standing::Over,
            Some(until) if until > now => Standing::Held(until - now),
            Some(_) => Standing::Late,
        }
    }

    /// When its agent is gone: it is stale for as long as the lease was.
    fn gone_at(&self) -> Option<Instant> {
        self.until.map(|until| until + self.term)
    }
}

#[derive(Default)]
pub struct Leases {
    held: Mutex<HashMap<AgentId, Held>>,
    changed: Notify,
}

impl Leases {
    fn held(&self) -> MutexGuard<'_, HashMap<AgentId, Held>> {
        self.held.lock().expect("no panic while holding the leases")
    }

    pub fn standing(&self, agent: AgentId) -> Option<Standing> {
        self.held().get(&agent).map(|held| held.stands(Instant::now()))
    }

    /// Whether the term is new, and has to be kept.
    fn extend(&self, agent: AgentId, term: Duration) -> bool {
        let before = self.held().insert(agent, Held { term, until: Some(Instant::now() + term) });
        self.changed.notify_one();
        before.is_none_or(|before| before.term != term || before.until.is_none())
    }

    pub fn forget(&self, agent: AgentId) {
        self.held().remove(&agent);
    }
}

impl Hub {
    /// How the lease of an agent stands, if it was announced. A configured agent of the same name needs none.
    pub fn standing(&self, agent: &Agent) -> Option<Standing> {
        self.leases.standing(agent.id).filter(|_| agent.source.added().is_some())
    }

    /// What was announced before this start: every lease is as if it had been extended just now, so that a hub which was
    /// down forgets nobody who is still there.
    pub async fn resume_leases(&self) -> Result<(), Fault> {
        for (agent, Lease { seconds, over }) in self.store.leases().await? {
            let term = Duration::from_secs(seconds.into());
            let until = (!over).then(|| Instant::now() + term);
            self.leases.held().entry(agent).or_insert(Held { term, until });
        }
        self.depart_again();
        Ok(())
    }

    /// In a registry that was made anew, those whose leases are over are gone again.
    pub fn depart_again(&self) {
        let over: Vec<AgentId> =
            self.leases.held().iter().filter(|(_, held)| held.until.is_none()).map(|(agent, _)| *agent).collect();
        for agent in over {
            self.depart(agent);
        }
    }

    fn depart(&self, agent: AgentId) {
        self.registry.rcu(|registry| {
            let mut registry = (**registry).clone();
            depart_from(&mut registry, agent);
            registry
        });
        self.vigil.wake();
    }

    /// An agent that is gone stays so, whatever is changed about it.
    pub(super) fn depart_if_over(&self, registry: &mut Registry, agent: &Agent) {
        if self.standing(agent) == Some(Standing::Over) {
            depart_from(registry, agent.id);
        }
    }

    /// Announces an agent that is elsewhere, or says that it is still there. It is the announcer's own.
    pub async fn announce(
        self: &Arc<Self>,
        caller: &Caller,
        name: &str,
        said: &str,
        term: Duration,
    ) -> Result<Arc<Agent>, Error> {
        caller.check(Right::AgentsWrite)?;
        let term = term.clamp(SHORTEST, LONGEST);
        let known = self.registry.load().by_name(name).cloned();
        let agent = match known {
            Some(agent) => self.announced_again(caller, agent, said).await?,
            None => return self.enter(caller, name, said, false, Some(term)).await,
        };
        self.lend(agent.id, term).await?;
        Ok(agent)
    }

    /// From now on an agent is there for as long as it is announced; without a term, for good.
    pub(super) async fn settle_lease(&self, agent: AgentId, term: Option<Duration>) -> Result<(), Fault> {
        if let Some(term) = term {
            return self.lend(agent, term).await;
        }
        if self.leases.standing(agent).is_some() {
            self.store.keep_lease(agent, None).await?;
            self.leases.forget(agent);
        }
        Ok(())
    }

    async fn lend(&self, agent: AgentId, term: Duration) -> Result<(), Fault> {
        if self.leases.extend(agent, term) {
            let seconds = u32::try_from(term.as_secs()).unwrap_or(u32::MAX);
            self.store.keep_lease(agent, Some(Lease { seconds, over: false })).await?;
        }
        Ok(())
    }

    async fn announced_again(
        self: &Arc<Self>,
        caller: &Caller,
        agent: Arc<Agent>,
        said: &str,
    ) -> Result<Arc<Agent>, Error> {
        let own = agent.is_owned_by(caller) && agent.is_seen_by(caller);
        let (Source::Added(added), true, true) = (&agent.source, own, self.standing(&agent).is_some()) else {
            let text = format!(
                "The name '{}' belongs to an agent that was not announced by you. Announce yours under another name.",
                agent.name
            );
            return Err(Refusal::new(Reason::AlreadyExists, text).into());
        };
        let plan = self.scout()?.plan(Some(&added.settings), said)?;
        if plan.settings == added.settings {
            return Ok(agent);
        }
        self.change_agent(caller, &agent.name, Changed::Some(said)).await
    }

    /// Ends an announcement of the caller's own, at once.
    pub async fn withdraw(self: &Arc<Self>, caller: &Caller, name: &str) -> Result<(), Error> {
        caller.check(Right::AgentsWrite)?;
        let agent = self.registry.load().by_name(name).cloned();
        let own = agent.filter(|agent| agent.is_owned_by(caller) && self.standing(agent).is_some());
        let Some(agent) = own else {
            let text = format!("You have announced no agent '{name}' here.");
            return Err(Refusal::new(Reason::NotFound, text).into());
        };
        self.end_lease(&agent).await?;
        tracing::info!(agent = name, by = %caller.name, "announcement withdrawn");
        Ok(())
    }

    async fn end_lease(&self, agent: &Agent) -> Result<(), Fault> {
        let seconds = {
            let mut held = self.leases.held();
            let Some(held) = held.get_mut(&agent.id) else { return Ok(()) };
            held.until = None;
            u32::try_from(held.term.as_secs()).unwrap_or(u32::MAX)
        };
        self.depart(agent.id);
        self.store.keep_lease(agent.id, Some(Lease { seconds, over: true })).await
    }

    /// Agents that are announced, among those of a caller.
    pub fn announced(&self, caller: &Caller) -> Result<Vec<(Arc<Agent>, Standing)>, Refusal> {
        caller.check(Right::AgentsRead)?;
        let registry = self.registry.load();
        let own = registry.agents().chain(registry.departed()).filter(|agent| agent.is_owned_by(caller));
        Ok(own.filter_map(|agent| Some((Arc::clone(agent), self.standing(agent)?))).collect())
    }

    /// Ends the leases whose time is over. Says when the next one's is.
    pub async fn end_leases(self: &Arc<Self>) -> Option<Instant> {
        let now = Instant::now();
        let gone: Vec<AgentId> = {
            let held = self.leases.held();
            held.iter().filter(|(_, held)| held.gone_at().is_some_and(|at| at <= now)).map(|(id, _)| *id).collect()
        };
        for id in gone {
            let agent = self.registry.load().by_id(id).cloned();
            let Some(agent) = agent else {
                self.leases.forget(id);
                continue;
            };
            tracing::warn!(agent = %agent.name, "nobody says any more that the agent is there; it is gone");
            if let Err(fault) = self.end_lease(&agent).await {
                tracing::error!(%fault, agent = %agent.name, "ending an announcement");
            }
        }
        self.leases.held().values().filter_map(Held::gone_at).min()
    }

    /// Resolves when a lease has changed.
    pub async fn leases_changed(&self) {
        self.leases.changed.notified().await;
    }
}

fn depart_from(registry: &mut Registry, agent: AgentId) {
    registry.depart(agent, |link| Arc::new(Departed(link)));
}
