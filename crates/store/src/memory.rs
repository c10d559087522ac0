//! The store that keeps nothing: for trying things out, for tests, and for work that need not survive the process.

mod alert;
mod approval;
mod key;
mod list;
mod push;
mod sweep;
mod table;
mod usage;

use crate::herald::Herald;
use flotilla_core::caller::Scope;
use flotilla_core::error::Fault;
use flotilla_core::fleet::Kept;
use flotilla_core::ids::{AgentId, PrincipalId, TaskId};
use flotilla_core::key::{FullName, KeyRecord, Principal};
use flotilla_core::log::Epoch;
use flotilla_core::ports::{
    Commit, Digest, Later, Lease, ListFilter, ListPage, Record, Retention, Sent, Store, Swept, Tail, View,
};
use flotilla_core::registry::{Added, Registration};
use flotilla_core::task::Head;
use flotilla_protocol::event::Change;
use flotilla_protocol::time::Millis;
use std::sync::{Arc, Mutex, MutexGuard};
use table::Tables;

/// Same behaviour as the durable store, by the same suite of tests; only not durable.
pub struct Memory {
    epoch: Epoch,
    hub_id: String,
    tables: Mutex<Tables>,
    herald: Herald,
}

impl Memory {
    /// Must be called within a runtime, on which commits are announced.
    pub fn new() -> Result<Self, Fault> {
        let (epoch, hub_id) = (crate::fresh_epoch()?, crate::fresh_hub_id()?);
        Ok(Self { epoch, hub_id, tables: Mutex::default(), herald: Herald::new() })
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().expect("no panic while holding the tables")
    }

    fn now<T: Send + 'static>(&self, answer: impl FnOnce(&mut Tables) -> T) -> Later<T> {
        let answer = answer(&mut self.tables());
        Box::pin(std::future::ready(Ok(answer)))
    }
}

/// Changes after a cursor, from a log whose beginning may be gone.
fn tail(
    log: &[Arc<Change>],
    (pruned, cursor): (u64, u64),
    limit: usize,
    last: impl Fn(&Change) -> u64,
    shows: impl Fn(&Change) -> bool,
) -> Tail {
    if cursor < pruned {
        return Tail::Pruned;
    }
    let start = log.partition_point(|change| last(change) <= cursor);
    Tail::Changes(log[start..].iter().filter(|change| shows(change)).take(limit).cloned().collect())
}

impl Store for Memory {
    fn epoch(&self) -> &Epoch {
        &self.epoch
    }
    fn hub_id(&self) -> &str {
        &self.hub_id
    }
    fn commit(&self, commit: Commit) -> bool {
        // Announced under the lock: the order of the commits is the order of the news.
        let mut tables = self.tables();
        let outcome = tables.write(&commit);
        self.herald.announce(vec![(commit.done, outcome)]);
        false
    }
    /// There is nothing to wait for.
    fn attend(&self) {}
    fn head(&self, scope: Scope, id: TaskId) -> Later<Option<Head>> {
        self.now(|tables| tables.seen(scope, id).map(|task| task.head.clone()))
    }
    fn record(&self, scope: Scope, id: TaskId) -> Later<Option<Record>> {
        self.now(|tables| tables.seen(scope, id).map(|task| task.record()))
    }
    fn shown(&self, scope: Scope, id: TaskId, _: View) -> Later<Option<Record>> {
        // Its changes are in memory, and shared.
        self.record(scope, id)
    }
    fn after_peer(&self, scope: Scope, id: TaskId, peer_seq: u64, limit: usize) -> Later<Tail> {
        self.now(|tables| {
            tables.seen(scope, id).map_or(Tail::Pruned, |task| {
                tail(&task.log, (task.pruned().1, peer_seq), limit, Change::last_peer_seq, |change| {
                    change.peer_count() > 0
                })
            })
        })
    }
    fn after(&self, scope: Scope, id: TaskId, seq: u64, limit: usize) -> Later<Tail> {
        self.now(|tables| {
            tables
                .seen(scope, id)
                .map_or(Tail::Pruned, |task| tail(&task.log, (task.pruned().0, seq), limit, Change::last_seq, |_| true))
        })
    }
    fn list(&self, principal: PrincipalId, agent: AgentId, filter: ListFilter) -> Later<ListPage> {
        self.now(|tables| list::page(tables, principal, agent, &filter))
    }
    fn agents_of(&self, principal: PrincipalId) -> Later<Vec<AgentId>> {
        self.now(|tables| list::agents(tables, principal))
    }
    fn callers_of(&self, agent: AgentId) -> Later<Vec<PrincipalId>> {
        self.now(|tables| list::callers(tables, agent))
    }
    fn earlier(&self, principal: PrincipalId, agent: AgentId, context: &str, before: TaskId) -> Later<Vec<Record>> {
        self.now(|tables| list::earlier(tables, principal, agent, context, before))
    }
    fn open_runs(&self) -> Later<Vec<TaskId>> {
        self.now(|tables| tables.open_runs())
    }
    fn waiting(&self) -> Later<Vec<(TaskId, AgentId)>> {
        self.now(|tables| tables.waiting())
    }
    fn deadlines(&self) -> Later<Vec<(TaskId, Millis)>> {
        self.now(|tables| tables.deadlines())
    }
    fn open_tasks(&self) -> Later<Vec<(PrincipalId, usize)>> {
        self.now(|tables| list::open(tables))
    }
    fn children(&self, scope: Scope, parent: TaskId, limit: usize) -> Later<Vec<Head>> {
        self.now(|tables| tables.children(scope, parent, limit))
    }
    fn sent(&self, key: Digest) -> Later<Option<Sent>> {
        self.now(|tables| tables.sent(&key))
    }
    fn sweep(&self, retention: Retention) -> Later<Swept> {
        self.now(|tables| sweep::sweep(tables, &retention))
    }
    fn agent(&self, name: &str, owner: PrincipalId) -> Later<AgentId> {
        self.now(|tables| tables.agent(name, owner))
    }
    fn registrations(&self) -> Later<Vec<(AgentId, Registration)>> {
        self.now(|tables| tables.registrations.values().cloned().collect())
    }
    fn register(&self, registration: Registration, take_over: bool) -> Later<Option<AgentId>> {
        self.now(|tables| {
            let id = tables.agent_of(&registration.name, registration.owner, take_over)?;
            tables.added.retain(|_, (added, _)| *added != id);
            tables.leases.remove(&id);
            tables.registrations.insert(registration.name.clone(), (id, registration));
            Some(id)
        })
    }
    fn added(&self) -> Later<Vec<(AgentId, Added)>> {
        self.now(|tables| tables.added.values().cloned().collect())
    }
    fn keep_added(&self, added: Added, take_over: bool) -> Later<Option<AgentId>> {
        self.now(|tables| {
            let id = tables.agent_of(&added.name, added.owner, take_over)?;
            tables.added.insert(added.name.clone(), (id, added));
            Some(id)
        })
    }
    fn remove_agent(&self, agent: AgentId) -> Later<bool> {
        self.now(|tables| {
            let before = tables.added.len() + tables.registrations.len();
            tables.leases.remove(&agent);
            let is_its_own = |name: &str| tables.added.get(name).is_some_and(|(id, _)| *id == agent);
            tables.proven.retain(|name, _| !is_its_own(name));
            tables.added.retain(|_, (id, _)| *id != agent);
            tables.registrations.retain(|_, (id, _)| *id != agent);
            before > tables.added.len() + tables.registrations.len()
        })
    }
    fn leases(&self) -> Later<Vec<(AgentId, Lease)>> {
        self.now(|tables| tables.leases.iter().map(|(agent, lease)| (*agent, *lease)).collect())
    }
    fn keep_lease(&self, agent: AgentId, lease: Option<Lease>) -> Later<()> {
        self.now(|tables| {
            match lease {
                Some(lease) => tables.leases.insert(agent, lease),
                None => tables.leases.remove(&agent),
            };
        })
    }
    fn proven(&self) -> Later<Vec<(String, String)>> {
        self.now(|tables| tables.proven.clone().into_iter().collect())
    }
    fn keep_proven(&self, agent: &str, place: Option<&str>) -> Later<()> {
        self.now(|tables| match place {
            Some(place) => drop(tables.proven.insert(agent.to_owned(), place.to_owned())),
            None => drop(tables.proven.remove(agent)),
        })
    }
    fn open_with(&self, agent: AgentId) -> Later<usize> {
        self.now(|tables| tables.tasks.values().filter(|task| task.head.agent == agent && !task.head.is_over()).count())
    }
    fn had_tasks(&self, agent: AgentId) -> Later<bool> {
        self.now(|tables| tables.tasks.values().any(|task| task.head.agent == agent))
    }
    fn workers(&self) -> Later<Vec<Kept>> {
        self.now(|tables| tables.workers.values().cloned().collect())
    }
    fn keep_worker(&self, kept: Kept) -> Later<()> {
        self.now(|tables| drop(tables.workers.insert(kept.agent.0, kept)))
    }
    fn principal(&self, name: FullName) -> Later<Principal> {
        self.now(|tables| tables.keyring.principal(&name))
    }
    fn key(&self, hash: Digest) -> Later<Option<KeyRecord>> {
        self.now(|tables| tables.keyring.keys.iter().find(|key| key.hash == hash).cloned())
    }
    fn keys(&self) -> Later<Vec<KeyRecord>> {
        self.now(|tables| tables.keyring.keys.clone())
    }
    fn keys_revision(&self) -> Later<u64> {
        self.now(|tables| tables.keyring.revision + 1)
    }
    fn add_key(&self, key: KeyRecord) -> Later<bool> {
        self.now(|tables| tables.keyring.add(key))
    }
    fn replace_key(&self, old: FullName, until: Millis, key: KeyRecord) -> Later<bool> {
        self.now(|tables| tables.keyring.replace(&old, until, key))
    }
    fn revoke_key(&self, name: FullName, at: Millis) -> Later<bool> {
        self.now(|tables| tables.keyring.revoke(&name, at))
    }
    fn restore_key(&self, name: FullName) -> Later<bool> {
        self.now(|tables| tables.keyring.restore(&name))
    }
    fn ping(&self) -> Later<()> {
        self.now(|_| ())
    }
}
