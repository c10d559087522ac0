//! The embedded store: a journal that commits are flushed to, SQLite tables they are put into, readers beside.

mod alert;
mod applier;
mod apply;
mod approval;
mod backup;
mod chain;
mod checkpoint;
mod courtesy;
mod journal;
mod key;
mod known;
mod lease;
mod list;
mod progress;
mod proven;
mod push;
mod queue;
mod reader;
mod registration;
mod rows;
mod schema;
mod send;
mod sweep;
mod task;
mod usage;
mod worker;
mod writer;

pub use backup::{backup, restore};
#[doc(hidden)]
pub use journal::fuzz;
pub use schema::VERSION as SCHEMA_VERSION;

use applier::Orders;
use checkpoint::Checkpoints;
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
use flotilla_protocol::time::Millis;
use journal::{Journal, Lock};
use progress::Progress;
use reader::Readers;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use writer::{Desk, Writer};

pub(crate) fn fault(what: &str) -> impl Fn(rusqlite::Error) -> Fault + '_ {
    move |error| Fault::new(format!("{what}: {error}"))
}

/// How hard a commit is pressed onto the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sync {
    /// Every commit is flushed before it is acknowledged.
    Full,
    /// A power cut may lose the last commits (a crash of the process does not).
    Normal,
}

impl Sync {
    fn name(self) -> &'static str {
        match self {
            Self::Full => "FULL",
            Self::Normal => "NORMAL",
        }
    }
}

pub struct Sqlite {
    epoch: Epoch,
    hub_id: String,
    /// Closed before the writer: the last to close puts the files in order, and a reader cannot.
    readers: Readers,
    /// Reads what is large, one after the other.
    alone: Arc<Readers>,
    writer: Writer,
    progress: Arc<Progress>,
    tables: Arc<Orders>,
    /// Changes of hooks that wait for the writer together.
    hooks: push::Together,
}

impl Sqlite {
    /// Opens or creates the store for the one hub that uses it, and brings its schema up to date.
    pub fn open(path: &Path, sync: Sync) -> Result<Self, Fault> {
        let path = &real(path);
        let lock = Lock::take(path)?;
        let mut connection = open_file(path, sync)?;
        schema::migrate(&mut connection)?;
        let epoch = schema::epoch(&connection)?;
        let last = settle(&connection, path, &epoch)?;
        let journal = Journal::begin(path, sync, &epoch, last, lock)?;
        Self::start(connection, path, sync, epoch, Some(journal))
    }

    /// Opens or creates the store for a tool, which may change keys and the like while a hub uses the store.
    pub fn open_beside(path: &Path) -> Result<Self, Fault> {
        let path = &real(path);
        let lock = Lock::try_take(path)?;
        let mut connection = open_file(path, Sync::Full)?;
        schema::migrate(&mut connection)?;
        let epoch = schema::epoch(&connection)?;
        if let Some(lock) = lock {
            settle(&connection, path, &epoch)?;
            journal::remove(path, &lock);
        }
        Self::start(connection, path, Sync::Full, epoch, None)
    }

    fn start(
        connection: Connection,
        path: &Path,
        sync: Sync,
        epoch: Epoch,
        journal: Option<Journal>,
    ) -> Result<Self, Fault> {
        let hub_id = schema::hub_id(&connection)?;
        let progress = Arc::new(Progress::starting_at(apply::applied(&connection)?));
        let checkpoints = Checkpoints::of(path, Arc::clone(&progress))?;
        connection.execute_batch("PRAGMA synchronous = NORMAL").map_err(fault("leaving flushes to the journal"))?;
        let applier = applier::start(connection, sync, Arc::clone(&progress), checkpoints)?;
        let tables = Arc::clone(&applier.orders);
        let desk = Desk::new(journal, applier, Arc::clone(&progress), reader::open(path)?)?;
        let writer = Writer::start(desk)?;
        let readers = Readers::new(path.to_owned(), reader::MOST);
        let alone = Arc::new(Readers::new(path.to_owned(), 1));
        Ok(Self { epoch, hub_id, readers, alone, writer, progress, tables, hooks: push::Together::default() })
    }

    /// Reads from the tables, as of one moment, once they hold all that was acknowledged.
    fn read<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Later<T> {
        let (progress, tables) = (Arc::clone(&self.progress), Arc::clone(&self.tables));
        self.readers.run(move |connection| {
            let written = progress.written();
            if progress.applied() < written {
                tables.apply_now();
                progress.wait_applied(written)?;
            }
            reader::at_one_moment(connection, job)
        })
    }

    /// Reads what may be large. Beyond a size it is read where only one is at a time: large reads take as much memory as
    /// one of them, and others need not wait for them.
    fn read_sized<T: Send + 'static>(
        &self,
        job: impl Fn(&mut Connection, u64) -> task::Unless<T> + Send + std::marker::Sync + 'static,
    ) -> Later<T> {
        let (job, alone) = (Arc::new(job), Arc::clone(&self.alone));
        let first = Arc::clone(&job);
        let read = self.read(move |connection| first(connection, task::LARGE));
        Box::pin(async move {
            if let Some(found) = read.await? {
                return Ok(found);
            }
            let whole = move |connection: &mut Connection| job(connection, u64::MAX);
            let found = alone.run(move |connection| reader::at_one_moment(connection, whole)).await?;
            found.ok_or_else(|| Fault::new("reading the store: nothing is larger than all"))
        })
    }

    fn write<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Later<T> {
        self.writer.run(job)
    }
}

/// Where the store really is: what lies beside it lies beside the file, not beside a link to it.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Puts what a journal holds beyond the tables into them, and presses them onto the disk. Returns the last batch.
fn settle(connection: &Connection, path: &Path, epoch: &Epoch) -> Result<u64, Fault> {
    let last = apply::catch_up(connection, path, epoch)?;
    checkpoint::press(path)?;
    Ok(last)
}

/// The size of a new store's pages; one that is there keeps its own. With twice SQLite's usual size a fifth less work is
/// needed to put tasks into the tables and to press those onto the disk, and a lone change writes little more.
const PAGE: usize = 8192;

fn open_file(path: &Path, sync: Sync) -> Result<Connection, Fault> {
    let connection =
        Connection::open(path).map_err(|error| Fault::new(format!("opening the store {}: {error}", path.display())))?;
    schema::check_ours(&connection)?;
    let synchronous = sync.name();
    connection
        .execute_batch(&format!(
            "PRAGMA page_size = {PAGE};
             PRAGMA journal_mode = WAL;
             PRAGMA synchronous = {synchronous};
             PRAGMA wal_autocheckpoint = 0;
             PRAGMA foreign_keys = OFF;
             PRAGMA temp_store = MEMORY;
             PRAGMA cache_size = -16000;
             PRAGMA busy_timeout = 10000;"
        ))
        .map_err(|error| Fault::new(format!("preparing the store {}: {error}", path.display())))?;
    reader::plan_once(&connection)?;
    Ok(connection)
}

impl Store for Sqlite {
    fn epoch(&self) -> &Epoch {
        &self.epoch
    }
    fn hub_id(&self) -> &str {
        &self.hub_id
    }
    fn commit(&self, commit: Commit) -> bool {
        self.writer.commit(commit)
    }
    fn attend(&self) {
        self.writer.attend();
    }
    fn head(&self, scope: Scope, id: TaskId) -> Later<Option<Head>> {
        self.read(move |connection| task::head(connection, scope, id))
    }
    fn record(&self, scope: Scope, id: TaskId) -> Later<Option<Record>> {
        self.read_sized(move |connection, most| task::record(connection, scope, id, most))
    }
    fn shown(&self, scope: Scope, id: TaskId, view: View) -> Later<Option<Record>> {
        self.read_sized(move |connection, most| task::shown(connection, scope, id, view, most))
    }
    fn after_peer(&self, scope: Scope, id: TaskId, peer_seq: u64, limit: usize) -> Later<Tail> {
        self.read(move |connection| task::after(connection, scope, id, task::By::PeerSeq(peer_seq), limit))
    }
    fn after(&self, scope: Scope, id: TaskId, seq: u64, limit: usize) -> Later<Tail> {
        self.read(move |connection| task::after(connection, scope, id, task::By::Seq(seq), limit))
    }
    fn list(&self, principal: PrincipalId, agent: AgentId, filter: ListFilter) -> Later<ListPage> {
        self.read_sized(move |connection, most| list::page(connection, principal, agent, &filter, most))
    }
    fn agents_of(&self, principal: PrincipalId) -> Later<Vec<AgentId>> {
        self.read(move |connection| list::agents(connection, principal))
    }
    fn callers_of(&self, agent: AgentId) -> Later<Vec<PrincipalId>> {
        self.read(move |connection| list::callers(connection, agent))
    }
    fn earlier(&self, principal: PrincipalId, agent: AgentId, context: &str, before: TaskId) -> Later<Vec<Record>> {
        let context = context.to_owned();
        self.read(move |connection| task::earlier(connection, principal, agent, &context, before))
    }
    fn open_runs(&self) -> Later<Vec<TaskId>> {
        self.read(task::open_runs)
    }
    fn waiting(&self) -> Later<Vec<(TaskId, AgentId)>> {
        self.read(task::waiting)
    }
    fn deadlines(&self) -> Later<Vec<(TaskId, Millis)>> {
        self.read(task::deadlines)
    }
    fn open_tasks(&self) -> Later<Vec<(PrincipalId, usize)>> {
        self.read(list::open)
    }
    fn children(&self, scope: Scope, parent: TaskId, limit: usize) -> Later<Vec<Head>> {
        self.read(move |connection| task::children(connection, scope, parent, limit))
    }
    fn sent(&self, key: Digest) -> Later<Option<Sent>> {
        self.writer.sent(key)
    }
    fn sweep(&self, retention: Retention) -> Later<Swept> {
        self.writer.sweep(retention)
    }
    fn agent(&self, name: &str, owner: PrincipalId) -> Later<AgentId> {
        let name = name.to_owned();
        self.write(move |connection| key::agent(connection, &name, owner))
    }
    fn registrations(&self) -> Later<Vec<(AgentId, Registration)>> {
        self.read(|connection| registration::all(connection))
    }
    fn register(&self, registration: Registration, take_over: bool) -> Later<Option<AgentId>> {
        self.write(move |connection| registration::keep(connection, &registration, take_over))
    }
    fn added(&self) -> Later<Vec<(AgentId, Added)>> {
        self.read(|connection| registration::added(connection))
    }
    fn keep_added(&self, added: Added, take_over: bool) -> Later<Option<AgentId>> {
        self.write(move |connection| registration::keep_added(connection, &added, take_over))
    }
    fn remove_agent(&self, agent: AgentId) -> Later<bool> {
        self.write(move |connection| registration::remove(connection, agent))
    }
    fn leases(&self) -> Later<Vec<(AgentId, Lease)>> {
        self.read(|connection| lease::all(connection))
    }
    fn keep_lease(&self, agent: AgentId, lease: Option<Lease>) -> Later<()> {
        self.write(move |connection| lease::keep(connection, agent, lease))
    }
    fn proven(&self) -> Later<Vec<(String, String)>> {
        self.read(|connection| proven::all(connection))
    }
    fn keep_proven(&self, agent: &str, place: Option<&str>) -> Later<()> {
        let (agent, place) = (agent.to_owned(), place.map(str::to_owned));
        self.write(move |connection| proven::keep(connection, &agent, place.as_deref()))
    }
    fn open_with(&self, agent: AgentId) -> Later<usize> {
        self.read(move |connection| list::open_with(connection, agent))
    }
    fn had_tasks(&self, agent: AgentId) -> Later<bool> {
        self.read(move |connection| list::had_tasks(connection, agent))
    }
    fn workers(&self) -> Later<Vec<Kept>> {
        self.read(|connection| worker::all(connection))
    }
    fn keep_worker(&self, kept: Kept) -> Later<()> {
        self.write(move |connection| worker::keep(connection, &kept))
    }
    fn principal(&self, name: FullName) -> Later<Principal> {
        self.write(move |connection| key::principal(connection, &name))
    }
    fn key(&self, hash: Digest) -> Later<Option<KeyRecord>> {
        self.read(move |connection| key::find(connection, &hash))
    }
    fn keys(&self) -> Later<Vec<KeyRecord>> {
        self.read(|connection| key::all(connection))
    }
    fn keys_revision(&self) -> Later<u64> {
        // Asked every second, and keys are in no journal: no need to wait for what is.
        self.readers.run(|connection| key::revision(connection))
    }
    fn add_key(&self, key: KeyRecord) -> Later<bool> {
        self.write(move |connection| key::add(connection, &key))
    }
    fn replace_key(&self, old: FullName, until: Millis, key: KeyRecord) -> Later<bool> {
        self.write(move |connection| key::replace(connection, &old, until, &key))
    }
    fn revoke_key(&self, name: FullName, at: Millis) -> Later<bool> {
        self.write(move |connection| key::revoke(connection, &name, at))
    }
    fn restore_key(&self, name: FullName) -> Later<bool> {
        self.write(move |connection| key::restore(connection, &name))
    }
    fn ping(&self) -> Later<()> {
        self.write(|connection| connection.query_row("SELECT 1", [], |_| Ok(())).map_err(fault("asking the store")))
    }
}
