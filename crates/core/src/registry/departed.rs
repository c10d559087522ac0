//! Agents that are gone: nobody finds them, nothing is sent to them, and their tasks can still be read and canceled.

use super::{Agent, Registry};
use crate::hub::RunHandle;
use crate::ids::{AgentId, TaskId};
use crate::ports::{Absence, Link, Reach, Stopped, Stopping};
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::work::Assignment;
use std::pin::Pin;
use std::sync::Arc;

pub const GONE: &str = "The agent was announced here, and nobody says any more that it is there.";

/// The way to an agent that is gone: what it has still goes on, and nothing new is begun.
pub struct Departed(pub Arc<dyn Link>);

impl Link for Departed {
    fn run(&self, assignment: Assignment, run: RunHandle) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.0.run(assignment, run)
    }

    fn is_remote(&self) -> bool {
        self.0.is_remote()
    }

    fn stop(&self, stopping: Stopping) -> Pin<Box<dyn Future<Output = Result<Stopped, Refusal>> + Send>> {
        self.0.stop(stopping)
    }

    fn stops_later(&self, task: TaskId) -> bool {
        self.0.stops_later(task)
    }

    fn absence(&self) -> Option<Absence> {
        Some(Absence { reason: GONE.to_owned(), ttl: None })
    }

    fn reach(&self) -> Option<Reach> {
        self.0.reach()
    }
}

impl Registry {
    /// Takes an agent out of the sight of all who look for one. Whoever has tasks with it still finds them.
    pub fn depart(&mut self, id: AgentId, link: impl FnOnce(Arc<dyn Link>) -> Arc<dyn Link>) {
        let Some(name) = self.names.get(&id).cloned() else { return };
        // A configured agent of the name counts, whoever announced one before.
        if self.agents.get(&name).is_none_or(|agent| agent.source.added().is_none()) {
            return;
        }
        if let Some(agent) = self.agents.remove(&name) {
            let mut gone = (*agent).clone();
            gone.link = link(gone.link);
            self.departed.insert(name, Arc::new(gone));
        }
    }

    pub fn departed(&self) -> impl Iterator<Item = &Arc<Agent>> {
        self.departed.values()
    }
}
