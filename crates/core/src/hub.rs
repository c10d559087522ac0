//! The hub: every operation on tasks, for every binding. Everything appends to a log or follows one.

mod agents;
mod alert;
mod allowance;
mod approve;
mod brief;
mod budget;
mod cancel;
mod committed;
mod conclude;
mod conversation;
mod deadline;
mod decide;
mod deliver;
mod descend;
mod dispatch;
mod doer;
mod early;
mod fleet;
mod follow;
mod halt;
mod hook;
mod judged;
mod late;
pub mod lease;
mod ledger;
mod live;
mod lookout;
mod meters;
mod occupied;
mod open;
mod own;
mod owner;
mod pace;
mod parts;
mod post;
mod probe;
mod push;
mod queue;
mod read;
mod recover;
mod register;
mod repeat;
mod resting;
mod row;
mod run;
mod send;
mod settle;
mod start;
mod stop;
mod tally;
mod tell;
mod trail;
mod tree;
mod turns;
mod vigil;
mod working;

pub use agents::Changed;
pub use approve::ApprovalPage;
pub use conversation::Talk;
pub use follow::{Ended, Follow, Framed, Next};
pub use hook::HookPage;
pub use late::Latecomer;
pub use ledger::{UsageQuery, UsageReport};
pub use live::LiveRef;
pub use own::{OfAgent, OwnPage, Sides};
pub use owner::{LogPage, OwnerFollow, OwnerNext};
pub use post::Posted;
pub use push::Push;
pub use recover::Recovered;
pub use run::RunHandle;
pub use send::{Outcome, SendOptions, no_push, no_streaming};
pub use tally::Place;
pub use tell::{EventFollow, EventNext};
pub use tree::{Branch, Tree};

use crate::caller::Scope;
use crate::error::{Error, Fault};
use crate::fleet::Fleet;
use crate::held_bytes::HeldBytes;
use crate::ids::{AgentId, PrincipalId, TaskId, WorkspaceId};
use crate::limits::Limits;
use crate::notice::Notices;
use crate::ports::{Clock, Scout, Store};
use crate::push::Desk;
use crate::rate::Rate;
use crate::registry::{Keeping, Registry};
use crate::roster::Roster;
use approve::Approvals;
use arc_swap::ArcSwap;
use budget::Purses;
use committed::Tell;
use deadline::Deadlines;
use decide::{ATTEMPTS, settled};
use flotilla_protocol::a2a::error::Refusal;
use lease::Leases;
use live::Lives;
use lookout::Lookout;
use meters::Meters;
use row::Rows;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use tally::Tally;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};
use turns::Turns;
use vigil::Vigil;

pub struct Hub {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    registry: ArcSwap<Registry>,
    keeping: ArcSwap<Keeping>,
    /// Looks for agents elsewhere, once somebody does.
    scout: OnceLock<Arc<dyn Scout>>,
    /// Whether agents elsewhere are there.
    vigil: Vigil,
    /// How long those are there who are announced.
    leases: Leases,
    limits: ArcSwap<Limits>,
    lives: Arc<Lives>,
    /// Bounds the commits on their way to the store.
    permits: Arc<Semaphore>,
    /// Runs under way, from the decision to start one to its end.
    runs: Arc<Tally<AgentId>>,
    /// Runs that wait for an agent which is not there.
    queued: Arc<Tally<AgentId>>,
    queued_by_workspace: Arc<Tally<WorkspaceId>>,
    /// Who dials in.
    roster: Arc<Roster>,
    /// The order of their runs.
    rows: Rows,
    /// Tasks that have not ended, by caller.
    open_tasks: Tally<PrincipalId>,
    /// Streams that are being read, by caller.
    streams: Arc<Tally<PrincipalId>>,
    /// Connections, by the first caller who showed a key on them.
    connections: Arc<Tally<PrincipalId>>,
    /// Who reads whole tasks now.
    turns: Turns,
    /// What requests and answers under way hold.
    held_bytes: Arc<HeldBytes>,
    /// Requests of each caller.
    requests: Rate<PrincipalId>,
    /// Messages to each agent.
    sends: Rate<AgentId>,
    /// Who carries webhooks, and when again.
    push: Push,
    desk: Desk,
    deadlines: Deadlines,
    /// Tasks elsewhere that wait for their callers.
    lookout: Lookout,
    approvals: Approvals,
    purses: Purses,
    stopping: watch::Sender<bool>,
    /// Set when those who wait for a task must be answered with what there is.
    hurrying: AtomicBool,
    runtime: Handle,
    meters: Meters,
    /// Workers and their work.
    fleet: Fleet,
    /// Whoever wants to hear of changes at once.
    notices: Notices,
    /// Tells this run of the hub from others.
    boot: String,
}

impl Hub {
    /// Must be called within a tokio runtime, on which runs are started.
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        registry: Registry,
        limits: Limits,
        push: Push,
        roster: Arc<Roster>,
    ) -> Arc<Self> {
        Arc::new(Self {
            store,
            clock,
            registry: ArcSwap::from_pointee(registry),
            keeping: ArcSwap::default(),
            scout: OnceLock::new(),
            vigil: Vigil::default(),
            leases: Leases::default(),
            limits: ArcSwap::from_pointee(limits),
            lives: Arc::default(),
            permits: Arc::new(Semaphore::new(limits.commits)),
            runs: Arc::default(),
            queued: Arc::default(),
            queued_by_workspace: Arc::default(),
            roster,
            rows: Rows::default(),
            open_tasks: Tally::default(),
            streams: Arc::default(),
            connections: Arc::default(),
            turns: Turns::default(),
            held_bytes: HeldBytes::new(&limits),
            requests: Rate::default(),
            sends: Rate::default(),
            push,
            desk: Desk::default(),
            deadlines: Deadlines::default(),
            lookout: Lookout::default(),
            approvals: Approvals::default(),
            purses: Purses::default(),
            stopping: watch::Sender::new(false),
            hurrying: AtomicBool::new(false),
            runtime: Handle::current(),
            meters: Meters::default(),
            fleet: Fleet::default(),
            notices: Notices::default(),
            boot: uuid::Uuid::new_v4().simple().to_string(),
        })
    }

    pub fn registry(&self) -> Arc<Registry> {
        self.registry.load_full()
    }

    /// Puts other agents in place; runs under way go on with the ones they started with.
    pub fn replace_registry(&self, mut registry: Registry) {
        registry.keep_hidden(&self.registry.load());
        self.fleet.describe(&registry);
        // What a card says may come meanwhile.
        self.registry.rcu(|_| {
            let known = registry.agents().map(|agent| self.vigil.as_known(agent));
            let known: Vec<_> = known.collect();
            let mut registry = registry.clone();
            known.into_iter().for_each(|agent| registry.insert(agent));
            registry
        });
        self.vigil.wake();
    }

    pub fn roster(&self) -> &Arc<Roster> {
        &self.roster
    }

    pub fn limits(&self) -> Limits {
        **self.limits.load()
    }

    pub fn held_bytes(&self) -> &Arc<HeldBytes> {
        &self.held_bytes
    }

    pub fn replace_limits(&self, limits: Limits) {
        self.held_bytes.set_limits(&limits);
        self.limits.store(Arc::new(limits));
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// The live task, if the scope sees it. "Not there" and "not yours" are the same on purpose.
    async fn task(&self, scope: Scope, id: &str) -> Result<LiveRef, Error> {
        let found = match TaskId::parse(id) {
            Some(parsed) => self.find(scope, parsed).await?,
            None => None,
        };
        found.ok_or_else(|| Refusal::no_task(id).into())
    }

    async fn find(&self, scope: Scope, id: TaskId) -> Result<Option<LiveRef>, Fault> {
        let live = self.lives.acquire(id);
        // Version 0 is a task whose first commit is still on its way: not there yet, for anybody.
        let seen = |live: &LiveRef| live.committed().is_some_and(|head| head.version > 0 && scope.sees(&head));
        // The store is asked also about a task in memory that is not theirs: it must take as long as one that is nowhere.
        if !seen(&live)
            && let Some(head) = self.store.head(scope, id).await?
        {
            live.load(head);
        }
        Ok(seen(&live).then_some(live))
    }
}
