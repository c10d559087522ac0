//! The embedded store: SQLite in WAL mode, one writer with group commit, readers beside it.

mod backup;
mod chain;
mod checkpoint;
mod key;
mod list;
mod push;
mod reader;
mod schema;
mod send;
mod sweep;
mod task;
mod writer;

pub use backup::{backup, restore};

use checkpoint::Checkpoints;
use flotilla_core::access::KeyRecord;
use flotilla_core::caller::Scope;
use flotilla_core::error::Fault;
use flotilla_core::ids::{AgentId, PrincipalId, TaskId};
use flotilla_core::log::Epoch;
use flotilla_core::ports::{Commit, Digest, Later, ListFilter, ListPage, Record, Retention, Sent, Store, Swept, Tail};
use flotilla_core::task::Head;
use flotilla_protocol::time::Millis;
use reader::Readers;
use rusqlite::Connection;
use std::path::Path;
use writer::Writer;

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

pub struct Sqlite {
    epoch: Epoch,
    writer: Writer,
    readers: Readers,
    /// Changes of hooks that wait for the writer together.
    hooks: push::Together,
}

impl Sqlite {
    /// Opens or creates the store and brings its schema up to date.
    pub fn open(path: &Path, sync: Sync) -> Result<Self, Fault> {
        let mut connection = open_file(path, sync)?;
        schema::migrate(&mut connection)?;
        let epoch = schema::epoch(&connection)?;
        let writer = Writer::start(connection, Checkpoints::beside(path)?)?;
        let readers = Readers::new(path.to_owned());
        Ok(Self { epoch, writer, readers, hooks: push::Together::default() })
    }

    fn read<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Later<T> {
        self.readers.run(job)
    }

    fn write<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Later<T> {
        self.writer.run(|connection, _| job(connection))
    }
}

fn open_file(path: &Path, sync: Sync) -> Result<Connection, Fault> {
    let connection =
        Connection::open(path).map_err(|error| Fault::new(format!("opening the store {}: {error}", path.display())))?;
    schema::check_ours(&connection)?;
    let synchronous = match sync {
        Sync::Full => "FULL",
        Sync::Normal => "NORMAL",
    };
    connection
        .execute_batch(&format!(
            "PRAGMA journal_mode = WAL;
             PRAGMA synchronous = {synchronous};
             PRAGMA wal_autocheckpoint = 0;
             PRAGMA foreign_keys = OFF;
             PRAGMA temp_store = MEMORY;
             PRAGMA cache_size = -16000;
             PRAGMA busy_timeout = 10000;"
        ))
        .map_err(|error| Fault::new(format!("preparing the store {}: {error}", path.display())))?;
    Ok(connection)
}

impl Store for Sqlite {
    fn epoch(&self) -> &Epoch {
        &self.epoch
    }
    fn commit(&self, commit: Commit) {
        self.writer.commit(commit);
    }
    fn head(&self, scope: Scope, id: TaskId) -> Later<Option<Head>> {
        self.read(move |connection| task::head(connection, scope, id))
    }
    fn record(&self, scope: Scope, id: TaskId) -> Later<Option<Record>> {
        self.read(move |connection| task::record(connection, scope, id))
    }
    fn after_peer(&self, scope: Scope, id: TaskId, peer_seq: u64, limit: usize) -> Later<Tail> {
        self.read(move |connection| task::after(connection, scope, id, task::By::PeerSeq(peer_seq), limit))
    }
    fn after(&self, scope: Scope, id: TaskId, seq: u64, limit: usize) -> Later<Tail> {
        self.read(move |connection| task::after(connection, scope, id, task::By::Seq(seq), limit))
    }
    fn list(&self, principal: PrincipalId, agent: AgentId, filter: ListFilter) -> Later<ListPage> {
        self.read(move |connection| list::page(connection, principal, agent, &filter))
    }
    fn open_runs(&self) -> Later<Vec<TaskId>> {
        self.read(task::open_runs)
    }
    fn open_tasks(&self) -> Later<Vec<(PrincipalId, usize)>> {
        self.read(list::open)
    }
    fn sent(&self, key: Digest) -> Later<Option<Sent>> {
        self.writer.run(move |connection, sends| sends.find(connection, &key))
    }
    fn sweep(&self, retention: Retention) -> Later<Swept> {
        self.writer.run(move |connection, sends| sweep::sweep(connection, sends, &retention))
    }
    fn agent(&self, name: &str, owner: PrincipalId) -> Later<AgentId> {
        let name = name.to_owned();
        self.write(move |connection| key::agent(connection, &name, owner))
    }
    fn key(&self, hash: Digest) -> Later<Option<KeyRecord>> {
        self.read(move |connection| key::find(connection, &hash))
    }
    fn keys(&self) -> Later<Vec<KeyRecord>> {
        self.read(|connection| key::all(connection))
    }
    fn add_key(&self, key: KeyRecord) -> Later<bool> {
        self.write(move |connection| key::add(connection, &key))
    }
    fn revoke_key(&self, name: &str, at: Millis) -> Later<bool> {
        let name = name.to_owned();
        self.write(move |connection| key::revoke(connection, &name, at))
    }
    fn ping(&self) -> Later<()> {
        self.write(|connection| connection.query_row("SELECT 1", [], |_| Ok(())).map_err(fault("asking the store")))
    }
}
