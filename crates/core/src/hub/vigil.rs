//! The vigil over agents elsewhere: when each is looked at, and what that came to.

use super::Hub;
use super::lease::Standing;
use crate::error::Fault;
use crate::ids::AgentId;
use crate::ports::{Breaker, Checked, Link, Missed};
use crate::registry::{Agent, Face, Liveness, Pulse, Registry};
use metrics::{counter, histogram};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

/// Agents that are looked at at once.
const CHECKS: usize = 16;
/// Searches for agents that are under way at once.
const SEARCHES: usize = 16;
/// How long a look may take.
const LONGEST: Duration = Duration::from_secs(60);

pub struct Vigil {
    watched: Mutex<HashMap<AgentId, Watched>>,
    changed: Notify,
    checks: Semaphore,
    pub searches: Semaphore,
}

impl Default for Vigil {
    fn default() -> Self {
        Self {
            watched: Mutex::default(),
            changed: Notify::new(),
            checks: Semaphore::new(CHECKS),
            searches: Semaphore::new(SEARCHES),
        }
    }
}

struct Watched {
    /// An agent that is reached in another way now is another agent.
    link: Weak<dyn Link>,
    pulse: Pulse,
    /// What its card said the last time.
    face: Option<Face>,
    next: Instant,
    under_way: bool,
    /// Checks so far.
    round: u64,
}

impl Vigil {
    fn watched(&self) -> MutexGuard<'_, HashMap<AgentId, Watched>> {
        self.watched.lock().expect("no panic while holding the vigil")
    }

    /// An agent that is reached as before is still what its card said, and is looked at again soon.
    pub fn as_known(&self, agent: &Arc<Agent>) -> Arc<Agent> {
        let mut watched = self.watched();
        let Some(known) = watched.get_mut(&agent.id).filter(|known| is_same(known, agent)) else {
            return Arc::clone(agent);
        };
        known.next = Instant::now();
        match &known.face {
            Some(face) => Arc::new((**agent).clone().with_face(face.clone())),
            None => Arc::clone(agent),
        }
    }

    /// Something about the agents has changed.
    pub fn wake(&self) {
        self.changed.notify_one();
    }
}

fn is_same(watched: &Watched, agent: &Agent) -> bool {
    watched.link.upgrade().is_some_and(|link| Arc::ptr_eq(&link, &agent.link))
}

impl Hub {
    /// How often an agent is looked at; none if nobody has to.
    fn looked_at_every(&self, agent: &Agent) -> Option<Duration> {
        let (believed, every) = (agent.link.believed()?, self.keeping.load().check_every);
        Some(if every.is_zero() { believed } else { every.min(believed) })
    }

    /// Whether an agent can be counted on.
    pub fn liveness(&self, agent: &Agent) -> Liveness {
        // Who announced it may not say any more that it is there.
        match self.standing(agent) {
            Some(Standing::Late) => return Liveness::Stale,
            Some(Standing::Over) => return Liveness::Gone,
            Some(Standing::Held(_)) | None => {}
        }
        if let Some(presence) = agent.link.presence() {
            return if presence.connections > 0 { Liveness::Live } else { Liveness::Absent };
        }
        match self.looked_at_every(agent) {
            None => Liveness::Live,
            Some(every) => {
                self.pulse(agent).map_or(Liveness::Unchecked, |pulse| pulse.liveness(self.clock.now(), every))
            }
        }
    }

    /// What the checks of an agent came to.
    pub fn pulse(&self, agent: &Agent) -> Option<Pulse> {
        let watched = self.vigil.watched();
        watched.get(&agent.id).filter(|watched| is_same(watched, agent)).map(|watched| watched.pulse.clone())
    }

    /// How many agents there are of each liveness, for the metrics.
    pub fn count_by_liveness(&self) -> Vec<(Liveness, usize)> {
        let registry = self.registry.load();
        let all = registry.agents().chain(registry.departed());
        let states: Vec<Liveness> = all.map(|agent| self.liveness(agent)).collect();
        Liveness::ALL.into_iter().map(|state| (state, states.iter().filter(|known| **known == state).count())).collect()
    }

    /// Which calls are let through to each agent elsewhere, for the metrics. A pause ends by itself, so it is looked at.
    pub fn breakers(&self) -> Vec<(String, Breaker)> {
        let registry = self.registry.load();
        let all = registry.agents().chain(registry.departed());
        all.filter_map(|agent| Some((agent.name.clone(), agent.link.reach()?.breaker))).collect()
    }

    /// Resolves when the agents may have changed, or a check is done.
    pub async fn agents_changed(&self) {
        self.vigil.changed.notified().await;
    }

    /// Starts the checks that are due. Says when the next one is, if there will be one.
    pub fn look_around(self: &Arc<Self>) -> Option<Instant> {
        let (registry, now) = (self.registry.load_full(), Instant::now());
        let mut watched = self.vigil.watched();
        watched.retain(|id, known| registry.by_id(*id).is_some_and(|agent| is_same(known, agent)));
        let mut due = None::<Instant>;
        for agent in registry.agents().filter(|agent| agent.link.believed().is_some()) {
            let known = watched.entry(agent.id).or_insert_with(|| Watched::new(agent));
            if known.under_way {
                continue;
            }
            if known.next > now {
                due = Some(due.map_or(known.next, |due| due.min(known.next)));
                continue;
            }
            known.under_way = true;
            let (hub, agent) = (Arc::clone(self), Arc::clone(agent));
            tokio::spawn(async move {
                if let Err(fault) = hub.look_at(&agent).await {
                    tracing::error!(%fault, agent = %agent.name, "checking an agent");
                }
            });
        }
        due
    }

    /// Looks at an agent now.
    pub(super) async fn look_at(self: &Arc<Self>, agent: &Arc<Agent>) -> Result<Pulse, Fault> {
        let _place = self.vigil.checks.acquire().await.map_err(|_| Fault::new("the hub has stopped"))?;
        let started = Instant::now();
        let checked = tokio::time::timeout(LONGEST, agent.link.check()).await;
        let late = || Missed { problem: format!("no answer within {} s", LONGEST.as_secs()), answers: false };
        let checked = checked.unwrap_or_else(|_| Err(late()));
        let latency = started.elapsed();
        let result = if checked.is_ok() { "reached" } else { "failed" };
        counter!("flotilla_agent_checks_total", "result" => result).increment(1);
        histogram!("flotilla_agent_check_seconds").record(latency.as_secs_f64());
        let every = self.looked_at_every(agent).unwrap_or(LONGEST);
        let (pulse, face) = {
            let mut watched = self.vigil.watched();
            let registry = self.registry.load();
            if !registry.by_id(agent.id).is_some_and(|known| Arc::ptr_eq(&known.link, &agent.link)) {
                // It was removed or changed meanwhile: nobody wants to know.
                return Ok(Pulse::default());
            }
            let known = watched.entry(agent.id).or_insert_with(|| Watched::new(agent));
            if !is_same(known, agent) {
                *known = Watched::new(agent);
            }
            let face = known.take_in(&agent.name, checked, self.clock.now(), latency);
            // A card that is not used for its signature's sake still shows its word.
            known.pulse.signed = agent.link.signed().or(known.pulse.signed.take());
            known.round += 1;
            let seed = known.round.wrapping_mul(611).wrapping_add(agent.id.0.unsigned_abs().wrapping_mul(367));
            known.next = Instant::now() + known.pulse.pause(every, seed);
            known.under_way = false;
            (known.pulse.clone(), face)
        };
        if let Some(face) = face {
            self.take_face(agent, &face);
        }
        self.vigil.wake();
        Ok(pulse)
    }

    /// What an agent's card says is put into the registry, if the agent is still there.
    fn take_face(&self, agent: &Agent, face: &Face) {
        self.registry.rcu(|registry| {
            let known = registry.by_name(&agent.name).filter(|known| Arc::ptr_eq(&known.link, &agent.link));
            let changed = known.and_then(|known| Registry::with(registry, (**known).clone().with_face(face.clone())));
            changed.map_or_else(|| Arc::clone(registry), Arc::new)
        });
    }
}

impl Watched {
    fn new(agent: &Agent) -> Self {
        Self {
            link: Arc::downgrade(&agent.link),
            pulse: Pulse::default(),
            face: None,
            next: Instant::now(),
            under_way: false,
            round: 0,
        }
    }

    /// What its card says, if that is new.
    fn take_in(
        &mut self,
        name: &str,
        checked: Result<Checked, Missed>,
        now: flotilla_protocol::time::Millis,
        latency: Duration,
    ) -> Option<Face> {
        match checked {
            Ok(checked) => {
                if self.pulse.failures > 0 {
                    tracing::info!(agent = name, "the agent answers again");
                }
                self.pulse.succeeded(now, latency, checked.signed, checked.findings);
                let is_new = self.face.as_ref() != Some(&checked.face);
                is_new.then(|| self.face.insert(checked.face).clone())
            }
            Err(missed) => {
                if self.pulse.failures == 0 {
                    let problem = &missed.problem;
                    tracing::warn!(agent = name, problem, "the agent does not answer as it should; it is tried again");
                }
                self.pulse.failed(now, missed);
                None
            }
        }
    }
}
