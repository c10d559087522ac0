//! What the core needs from outside: a store, links to agents, a scout, a courier, a signer, a clock. Nothing else is a
//! trait.

mod alert;
mod approval;
mod push;
mod reach;
mod scout;
mod usage;
mod waiting;

pub use alert::{AlertStore, MOST_OWED, Owed};
pub use approval::ApprovalStore;
pub use push::{Accepting, Courier, HookStore, Parcel, Standing};
pub use reach::{Breaker, Reach};
pub use scout::{Asked, Checked, Discovered, Missed, Plan, Scout};
pub use usage::UsageStore;
pub use waiting::{Look, Stopped, Stopping, Waiting};

use crate::caller::Scope;
use crate::error::Fault;
use crate::fleet::Kept;
use crate::hub::RunHandle;
use crate::ids::{AgentId, PrincipalId, TaskId};
use crate::key::{FullName, KeyRecord, Principal};
use crate::log::Epoch;
use crate::project::Fold;
use crate::registry::{Added, Registration, Signed};
use crate::roster::{Presence, Terms};
use crate::task::Head;
use flotilla_protocol::a2a::card::AgentCardSignature;
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::model::TaskState;
use flotilla_protocol::event::Change;
use flotilla_protocol::time::Millis;
use flotilla_protocol::work::{Assignment, Report};
use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// An answer that arrives later.
pub type Later<T> = Pin<Box<dyn Future<Output = Result<T, Fault>> + Send>>;

/// How many tasks of a context are looked at for what an agent elsewhere calls it.
pub const EARLIER: usize = 4;

/// A 256-bit digest.
pub type Digest = [u8; 32];

/// The proof that a message was sent before: its key, and a hash of what it said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dedupe {
    pub key: Digest,
    pub hash: Digest,
}

/// An earlier send under the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    pub task: TaskId,
    pub hash: Digest,
}

/// Why a commit did not happen.
#[derive(Debug, Clone)]
pub enum NotCommitted {
    /// The task is no longer at the version the decision saw.
    Stale,
    /// The same key was sent before.
    Duplicate(Sent),
    Failed(Fault),
}

/// Called once, in the order of the commits of a task, when a commit is durable or known not to be.
pub type Done = Box<dyn FnOnce(Result<(), NotCommitted>) + Send>;

/// One decision on its way to the store.
pub struct Commit {
    /// The head after the change; its version is one above the version the decision saw.
    pub head: Head,
    /// The state's number before the change, for the counters; none for a new task.
    pub state_before: Option<u8>,
    pub change: Arc<Change>,
    /// The change's events as they are stored.
    pub body: Vec<u8>,
    pub dedupe: Option<Dedupe>,
    pub done: Done,
}

/// A task read back: a fold of its early log if there is one, and the changes after it.
#[derive(Debug, Clone)]
pub struct Record {
    pub head: Head,
    pub fold: Option<Folded>,
    pub changes: Vec<Arc<Change>>,
}

/// A log's beginning, folded. The events themselves may be gone.
#[derive(Debug, Clone)]
pub struct Folded {
    pub seq: u64,
    pub peer_seq: u64,
    pub fold: Fold,
    /// Who asked first, where that was read.
    pub from: Option<String>,
}

/// How much of a task is shown: up to a peer-visible event, with so many of its latest messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    pub until: u64,
    /// None is all of them.
    pub history: Option<usize>,
}

/// Changes after a cursor, or word that they are no longer there.
#[derive(Debug, Clone)]
pub enum Tail {
    Changes(Vec<Arc<Change>>),
    Pruned,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListFilter {
    pub context: Option<String>,
    pub state: Option<TaskState>,
    pub status_since: Option<Millis>,
    /// Continue after this place, newest status first.
    pub after: Option<(Millis, TaskId)>,
    pub limit: usize,
    /// A page ends before its content is larger than this; it always holds one task.
    pub bytes: usize,
    pub with_artifacts: bool,
    /// At most so many of each task's latest messages are wanted; none means all.
    pub history: Option<usize>,
}

impl Default for ListFilter {
    fn default() -> Self {
        Self {
            context: None,
            state: None,
            status_since: None,
            after: None,
            limit: 0,
            bytes: usize::MAX,
            with_artifacts: false,
            history: None,
        }
    }
}

#[derive(Debug, Clone)]
pub struct ListPage {
    pub records: Vec<Record>,
    /// How large each of them is.
    pub sizes: Vec<usize>,
    pub total: u64,
    pub more: bool,
}

/// How much is kept, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// Ended tasks older than this are removed.
    pub tasks_before: Option<Millis>,
    /// At most so many ended tasks are kept.
    pub tasks_max: Option<u64>,
    /// Ended tasks older than this keep their result, but not the single events.
    pub events_before: Option<Millis>,
    pub dedupe_before: Option<Millis>,
    pub dedupe_max: Option<u64>,
}

/// What a sweep removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    pub tasks: u64,
    pub logs: u64,
    pub sends: u64,
}

/// What is remembered. Implementations are equal in behaviour; one conformance suite runs over all of them.
pub trait Store: HookStore + ApprovalStore + UsageStore + AlertStore {
    fn epoch(&self) -> &Epoch;

    /// The name of this hub among others: made with the store, and kept through backups and restores.
    fn hub_id(&self) -> &str;

    /// Queues a commit. Commits of one task are made in the order of the calls. True if whoever made it has to `attend` to
    /// it, as soon as it holds nothing that those may want who are told.
    #[must_use]
    fn commit(&self, commit: Commit) -> bool;

    /// Sees to what was queued, where it is called, and tells what became of it.
    fn attend(&self);

    fn head(&self, scope: Scope, id: TaskId) -> Later<Option<Head>>;
    /// A task with its whole log, as far as its events are kept.
    fn record(&self, scope: Scope, id: TaskId) -> Later<Option<Record>>;
    /// A task to be shown. A long log is folded where it is read, one change after the other, so that showing it takes
    /// the memory of what is shown and not that of its log.
    fn shown(&self, scope: Scope, id: TaskId, view: View) -> Later<Option<Record>>;
    /// Changes that hold peer-visible events after `peer_seq`, oldest first, at most `limit`; fewer where they are large,
    /// but one if there is any. A reader that does not read must not cost memory.
    fn after_peer(&self, scope: Scope, id: TaskId, peer_seq: u64, limit: usize) -> Later<Tail>;
    /// Changes with events after `seq`, oldest first, at most `limit`.
    fn after(&self, scope: Scope, id: TaskId, seq: u64, limit: usize) -> Later<Tail>;
    fn list(&self, principal: PrincipalId, agent: AgentId, filter: ListFilter) -> Later<ListPage>;
    /// The agents a principal has tasks with.
    fn agents_of(&self, principal: PrincipalId) -> Later<Vec<AgentId>>;
    /// The principals who have tasks with an agent.
    fn callers_of(&self, agent: AgentId) -> Later<Vec<PrincipalId>>;
    /// The latest tasks and exchanges of a context before one of them, newest first, without their artifacts.
    fn earlier(&self, principal: PrincipalId, agent: AgentId, context: &str, before: TaskId) -> Later<Vec<Record>>;
    /// Tasks whose run was under way when the store was last used.
    fn open_runs(&self) -> Later<Vec<TaskId>>;
    /// Tasks that wait for their caller, with their agents.
    fn waiting(&self) -> Later<Vec<(TaskId, AgentId)>>;
    /// Tasks that have not ended and will at some time.
    fn deadlines(&self) -> Later<Vec<(TaskId, Millis)>>;
    /// How many tasks of each principal have not ended; a principal without any may be left out.
    fn open_tasks(&self) -> Later<Vec<(PrincipalId, usize)>>;
    /// The tasks whose parent this is, oldest first.
    fn children(&self, scope: Scope, parent: TaskId, limit: usize) -> Later<Vec<Head>>;
    fn sent(&self, key: Digest) -> Later<Option<Sent>>;

    /// Removes what retention says, a bounded amount per call; folds ended logs that are long.
    fn sweep(&self, retention: Retention) -> Later<Swept>;

    fn agent(&self, name: &str, owner: PrincipalId) -> Later<AgentId>;
    /// The agents that registered themselves, by name.
    fn registrations(&self) -> Later<Vec<(AgentId, Registration)>>;
    /// Keeps an agent that registers itself, or what is new about it, in the place of one that was added. None if the name
    /// was another owner's before, and may not be taken over.
    fn register(&self, registration: Registration, take_over: bool) -> Later<Option<AgentId>>;
    /// The agents that were added, by name.
    fn added(&self) -> Later<Vec<(AgentId, Added)>>;
    /// The same of one that is added.
    fn keep_added(&self, added: Added, take_over: bool) -> Later<Option<AgentId>>;
    /// Forgets that an agent was added or registered itself; false if it is neither. Its tasks and its number stay.
    fn remove_agent(&self, agent: AgentId) -> Later<bool>;
    /// The leases of agents that are announced.
    fn leases(&self) -> Later<Vec<(AgentId, Lease)>>;
    /// None ends it: the agent needs none any more.
    fn keep_lease(&self, agent: AgentId, lease: Option<Lease>) -> Later<()>;
    /// What the cards of agents were verified for, by the agents' names.
    fn proven(&self) -> Later<Vec<(String, String)>>;
    /// None forgets it.
    fn keep_proven(&self, agent: &str, place: Option<&str>) -> Later<()>;
    /// How many tasks with an agent have not ended.
    fn open_with(&self, agent: AgentId) -> Later<usize>;
    /// Whether an agent was given a task, as far as that is remembered.
    fn had_tasks(&self, agent: AgentId) -> Later<bool>;
    /// The latest announcement of each worker.
    fn workers(&self) -> Later<Vec<Kept>>;
    /// Keeps a worker's announcement in the place of the one before.
    fn keep_worker(&self, kept: Kept) -> Later<()>;
    /// The principal of this name, who is made if there is none; so is the workspace.
    fn principal(&self, name: FullName) -> Later<Principal>;
    fn key(&self, hash: Digest) -> Later<Option<KeyRecord>>;
    fn keys(&self) -> Later<Vec<KeyRecord>>;
    /// A number that differs whenever the keys do, whichever process changed them; never zero.
    fn keys_revision(&self) -> Later<u64>;
    /// Adds a key of a principal, who is made if there is none; refused (false) if the key's name is taken. The numbers
    /// in the record do not matter.
    fn add_key(&self, key: KeyRecord) -> Later<bool>;
    /// Adds a key in the place of a live one, which ends at a time; refused (false) if that one is not there, or the
    /// new one's name is taken.
    fn replace_key(&self, old: FullName, until: Millis, key: KeyRecord) -> Later<bool>;
    /// Revokes by name; false if there is no such key, or it is revoked already.
    fn revoke_key(&self, name: FullName, at: Millis) -> Later<bool>;
    /// Makes a key good again that was revoked or has expired, without an end; false if there is no such key.
    fn restore_key(&self, name: FullName) -> Later<bool>;
    /// Whether the store answers.
    fn ping(&self) -> Later<()>;
}

/// A way to reach an agent. Whoever made it may look at it as what it is.
pub trait Link: Any + Send + Sync {
    /// Does a run. The handle reports, and says when to stop.
    fn run(&self, assignment: Assignment, run: RunHandle) -> Pin<Box<dyn Future<Output = ()> + Send>>;

    /// Begins a run whose agent does nothing outside the hub. Nothing is committed yet, so nothing may be seen of it.
    fn begin(&self, _assignment: &dyn Fn() -> Option<Assignment>) -> Option<Beginning> {
        None
    }

    /// Whether the agent is elsewhere and works on without this process: then an assignment carries its trail, and a
    /// run that was under way when the hub stopped is taken up again instead of being lost.
    fn is_remote(&self) -> bool {
        false
    }

    /// Makes the agent stop, or finds out that it does not. The hub says CANCELED only after this says so.
    fn stop(&self, _task: Stopping) -> Pin<Box<dyn Future<Output = Result<Stopped, Refusal>> + Send>> {
        Box::pin(std::future::ready(Ok(Stopped::Now(None))))
    }

    /// A run that the last process gave to an agent that dials in has ended: it is told when it is back. `theirs` is what it
    /// calls the task.
    fn stop_when_back(&self, _task: TaskId, _run: u32, _theirs: String) {}

    /// Looks whether an agent elsewhere has gone on by itself with a task that waits for its caller. That may take a
    /// while, as long as something may come of it.
    fn look(&self, _task: Waiting) -> Pin<Box<dyn Future<Output = Look> + Send>> {
        Box::pin(std::future::ready(Look::Over))
    }

    /// Whether the run of a task stops for certain when it is asked to, but takes its time: the log says that it was asked.
    fn stops_later(&self, _task: TaskId) -> bool {
        false
    }

    /// Why a message would have to wait now, if nobody is there to take it.
    fn absence(&self) -> Option<Absence> {
        None
    }

    /// How the agent is treated, if it is one that dials in.
    fn dialed(&self) -> Option<Terms> {
        None
    }

    /// How an agent elsewhere is reached just now.
    fn reach(&self) -> Option<Reach> {
        None
    }

    /// Who of an agent that dials in is connected.
    fn presence(&self) -> Option<Presence> {
        None
    }

    /// How long what a check told of an agent elsewhere is believed; none for agents that nobody has to look at.
    fn believed(&self) -> Option<Duration> {
        None
    }

    /// Looks whether an agent elsewhere is there, and what its card says.
    fn check(&self) -> Pin<Box<dyn Future<Output = Result<Checked, Missed>> + Send>> {
        Box::pin(std::future::ready(Err(Missed { problem: "it needs no check".to_owned(), answers: true })))
    }

    /// What the signatures of the last card are worth that it showed, used or not.
    fn signed(&self) -> Option<Signed> {
        None
    }
}

/// How long an agent that is announced is there without another word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    pub seconds: u32,
    /// It has ended, and the agent is gone.
    pub over: bool,
}

/// A run that began before anything of it was committed.
pub struct Beginning {
    /// What the agent said before it first waited.
    pub reports: Vec<Report>,
    pub rest: Rest,
}

/// What is left of a run's work, to be done when its beginning is committed.
pub type Rest = Box<dyn FnOnce(RunHandle) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// Nobody is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Absence {
    /// What the caller is told.
    pub reason: String,
    /// How long a message waits, unless its caller says otherwise; zero refuses it at once. None: it never waits.
    pub ttl: Option<Duration>,
}

pub trait Clock: Send + Sync + 'static {
    fn now(&self) -> Millis;
}

/// Signs cards, so that their readers can tell whose they are.
pub trait Signer: Send + Sync + 'static {
    /// The signatures of a card that has none yet; `keys_at` is the address of the hub's key set. A card that was signed
    /// before gets the same ones again.
    fn sign(&self, card: &str, keys_at: &str) -> Result<Arc<[AgentCardSignature]>, Fault>;
    /// Every public key of the hub that is in use, as a JSON Web Key Set.
    fn key_set(&self) -> String;
    /// When the keys last changed.
    fn changed_at(&self) -> Millis;
}
