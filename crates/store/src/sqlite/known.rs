//! The versions of tasks that changed lately: what a commit is checked against before it is in the tables.

use super::fault;
use flotilla_core::error::Fault;
use flotilla_core::ids::TaskId;
use flotilla_core::map::IdMap;
use rusqlite::{Connection, OptionalExtension};

/// Tasks in one of the two generations: far more than can be on their way to the tables, so that what is forgotten here
/// is there.
const GENERATION: usize = 65_536;

pub struct Known {
    recent: IdMap<TaskId, u64>,
    before: IdMap<TaskId, u64>,
    /// Tasks with greater ids are known here, or are not there: ids grow with time.
    floor: Option<TaskId>,
}

impl Known {
    pub fn new(connection: &Connection) -> Result<Self, Fault> {
        let newest: Option<[u8; 16]> = connection
            .query_row("SELECT max(id) FROM tasks", [], |row| row.get(0))
            .map_err(fault("looking for the newest task"))?;
        Ok(Self { recent: IdMap::default(), before: IdMap::default(), floor: newest.map(TaskId::from_bytes) })
    }

    /// The task's version after all commits that were accepted; 0 for one that is not there.
    pub fn version(&self, connection: &Connection, id: TaskId) -> Result<u64, Fault> {
        if let Some(version) = self.recent.get(&id).or_else(|| self.before.get(&id)) {
            return Ok(*version);
        }
        if self.floor.is_none_or(|floor| id > floor) {
            return Ok(0);
        }
        let mut statement = connection
            .prepare_cached("SELECT version FROM tasks WHERE id = ?1")
            .map_err(fault("reading a task's version"))?;
        let version = statement.query_row([id.bytes()], |row| row.get::<_, i64>(0)).optional();
        version.map(|version| version.unwrap_or(0) as u64).map_err(fault("reading a task's version"))
    }

    pub fn set(&mut self, id: TaskId, version: u64) {
        if self.recent.len() >= GENERATION {
            let forgotten = std::mem::replace(&mut self.before, std::mem::take(&mut self.recent));
            self.floor = self.floor.max(forgotten.into_keys().max());
        }
        self.recent.insert(id, version);
    }

    /// The task is gone.
    pub fn forget(&mut self, id: TaskId) {
        self.recent.remove(&id);
        self.before.remove(&id);
    }
}
