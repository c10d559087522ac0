//! Agents elsewhere: the hub's own log comes first, then the call, and what comes of it is put into the log.

mod breaker;
mod call;
mod face;
mod fault;
mod look;
pub mod options;
mod reach;
mod request;
mod run;
mod search;
mod seen;
mod stop;
mod trust;

pub use trust::permitted;

use crate::client::Client;
use crate::client::error::ClientError;
use crate::guard::Guard;
use arc_swap::ArcSwapOption;
use breaker::Switch;
use call::Calls;
use flotilla_core::hub::RunHandle;
use flotilla_core::ids::TaskId;
use flotilla_core::ports::{Checked, Link, Look, Missed, Reach, Stopped, Stopping, Waiting};
use flotilla_core::registry::{Proven, Signed};
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::lineage::Lineage;
use flotilla_protocol::work::Assignment;
use look::Lookers;
use metrics::{Counter, counter};
use options::Options;
use reach::Way;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// One agent elsewhere.
pub struct Remote {
    options: Arc<Options>,
    way: Way,
    breaker: Switch,
    /// Why its card could not be read the last time, though somebody answers where it is called.
    stale: ArcSwapOption<String>,
    /// Why its card could not be used at the last check.
    problem: ArcSwapOption<String>,
    calls: Arc<Calls>,
    lookers: Lookers,
    meters: Meters,
}

/// How calls went, counted.
struct Meters {
    answered: Counter,
    refused: Counter,
    unreached: Counter,
}

impl Meters {
    fn new(agent: &str) -> Self {
        let counter = |outcome: &'static str| counter!("flotilla_remote_calls_total", "agent" => agent.to_owned(), "outcome" => outcome);
        Self { answered: counter("answered"), refused: counter("refused"), unreached: counter("unreached") }
    }
}

impl Remote {
    /// Nothing is called yet: the agent may be down. The guard says where a card that is fetched may lead.
    pub fn new(options: Options, guard: Guard, proven: Arc<Proven>) -> Result<Self, ClientError> {
        let breaker = Switch::new(&options.name, options.breaker);
        let meters = Meters::new(&options.name);
        let options = Arc::new(options);
        let way = Way::new(Arc::clone(&options), guard, proven)?;
        let (stale, problem) = (ArcSwapOption::empty(), ArcSwapOption::empty());
        Ok(Self { options, way, breaker, stale, problem, calls: Arc::default(), lookers: Lookers::default(), meters })
    }

    /// A client for calls beside the runs of a task, which tell of the same origin as those.
    async fn client_for(&self, lineage: &Lineage) -> Result<Client, ClientError> {
        Ok(self.way.client().await?.carrying(request::headers_beside(&lineage.onward())))
    }

    /// Whether another one made of this would be the same, but for what this one has learned of its agent.
    pub fn is_made_of(&self, options: &Options, guard: &Guard) -> bool {
        *self.options == *options && self.way.guard.is_like(guard)
    }
}

/// A link that can be held by those who call and by those who look after it.
pub struct RemoteLink(pub Arc<Remote>);

impl Link for RemoteLink {
    fn run(&self, assignment: Assignment, run: RunHandle) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let remote = Arc::clone(&self.0);
        Box::pin(async move {
            let Some(task) = TaskId::parse(&assignment.task_id) else {
                return run.give_up("the assignment names no task of this hub", false).await;
            };
            run::Run::new(remote, task, assignment, run).perform().await;
        })
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn stop(&self, task: Stopping) -> Pin<Box<dyn Future<Output = Result<Stopped, Refusal>> + Send>> {
        let remote = Arc::clone(&self.0);
        Box::pin(async move { remote.stop_task(task).await })
    }

    fn look(&self, task: Waiting) -> Pin<Box<dyn Future<Output = Look> + Send>> {
        let remote = Arc::clone(&self.0);
        Box::pin(async move { remote.look_at(task).await })
    }

    fn reach(&self) -> Option<Reach> {
        let (breaker, failures, problem) = self.0.breaker.look();
        let chosen = self.0.way.chosen();
        Some(Reach {
            address: self.0.options.address(),
            binding: chosen.as_ref().map(|client| client.choice().binding.name()),
            version: chosen.as_ref().map(|client| client.version()),
            breaker,
            failures,
            problem: problem.or_else(|| self.0.problem.load_full().map(|problem| (*problem).clone())),
            credential: self.0.options.credential.clone(),
        })
    }

    fn believed(&self) -> Option<Duration> {
        Some(self.0.options.refresh)
    }

    fn check(&self) -> Pin<Box<dyn Future<Output = Result<Checked, Missed>> + Send>> {
        let remote = Arc::clone(&self.0);
        Box::pin(async move { remote.check().await })
    }

    fn signed(&self) -> Option<Signed> {
        self.0.way.word()
    }
}
