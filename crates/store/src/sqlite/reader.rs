//! Readers: a few connections beside the writer, each seeing only what is committed.

use super::fault;
use flotilla_core::error::Fault;
use flotilla_core::ports::Later;
use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Connections kept open when idle.
const KEPT: usize = 4;

pub struct Readers(Arc<Pool>);

struct Pool {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub fn new(path: PathBuf) -> Self {
        Self(Arc::new(Pool { path, idle: Mutex::default() }))
    }

    pub fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Later<T> {
        let pool = Arc::clone(&self.0);
        let task = tokio::task::spawn_blocking(move || {
            let mut connection = pool.take()?;
            let answer = job(&mut connection);
            pool.give_back(connection);
            answer
        });
        Box::pin(async move { task.await.map_err(|error| Fault::new(format!("reading: {error}")))? })
    }
}

impl Pool {
    fn take(&self) -> Result<Connection, Fault> {
        let idle = self.idle.lock().map_err(|_| Fault::new("a reader panicked"))?.pop();
        idle.map_or_else(|| open(&self.path), Ok)
    }

    fn give_back(&self, connection: Connection) {
        if let Ok(mut idle) = self.idle.lock()
            && idle.len() < KEPT
        {
            idle.push(connection);
        }
    }
}

pub fn open(path: &Path) -> Result<Connection, Fault> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(fault("opening the store to read"))?;
    connection
        .execute_batch("PRAGMA busy_timeout = 10000; PRAGMA cache_size = -4000; PRAGMA mmap_size = 268435456;")
        .map_err(fault("preparing a reader"))?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(connection)
}
