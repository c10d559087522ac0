//! Tasks and their changes as rows.

use super::chain;
use super::fault;
use super::journal::entry::{kind_of, run_of};
use flotilla_core::caller::Scope;
use flotilla_core::error::Fault;
use flotilla_core::ids::{AgentId, ApprovalId, PrincipalId, TaskId};
use flotilla_core::ports::{EARLIER, Folded, Record, Tail, View};
use flotilla_core::project::Fold;
use flotilla_core::task::Head;
use flotilla_protocol::a2a::model::{Artifact, Message, TaskState, TaskStatus};
use flotilla_protocol::event::Event;
use flotilla_protocol::lineage::Origin;
use flotilla_protocol::time::Millis;
use flotilla_protocol::wire::{Object, Unknown};
use flotilla_protocol::work::Upstream;
use rusqlite::types::{Type, Value};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What a peer that reads on is handed at once: small events take ten times as much in memory.
const TAIL_BYTES: usize = 128 * 1024;
/// What the hub itself and a task's owner are handed at once.
const LOG_BYTES: usize = 1024 * 1024;

/// A log that is longer is folded as it is read.
const LONG: u64 = 256 * 1024;
/// A log that is longer is read where only one is read at a time.
pub const LARGE: u64 = 2 * 1024 * 1024;
/// The size of the smallest events.
const SMALL_EVENT: u64 = 64;

/// The columns `stored_of` reads, in its order.
pub const COLUMNS: &str = "id, principal, agent, owner, context, state, status_at, created_at, version, seq, \
                           peer_seq, run, run_state, turn, waiting, deadline, ancestry, open_approvals, \
                           last_change, folded, pruned_seq, pruned_peer_seq, bytes";

/// What was read, unless it is larger than was allowed.
pub type Unless<T> = Result<Option<T>, Fault>;

/// A task's row: its head, and where the rest of it is.
pub struct Stored {
    pub head: Head,
    /// The row of its newest change.
    last_change: Option<i64>,
    /// Whether it has a fold.
    folded: bool,
    pruned_seq: u64,
    pruned_peer_seq: u64,
}

impl Stored {
    /// About the size of its log. One that was begun before sizes were kept counts by its events.
    pub fn size(&self) -> u64 {
        self.head.bytes.max(self.head.seq * SMALL_EVENT)
    }
}

pub fn stored_of(row: &Row<'_>) -> rusqlite::Result<Stored> {
    Ok(Stored {
        head: head_of(row)?,
        last_change: row.get(18)?,
        folded: row.get(19)?,
        pruned_seq: row.get::<_, i64>(20)? as u64,
        pruned_peer_seq: row.get::<_, i64>(21)? as u64,
    })
}

fn head_of(row: &Row<'_>) -> rusqlite::Result<Head> {
    let state: u8 = row.get(5)?;
    let run_state: u8 = row.get(12)?;
    Ok(Head {
        id: TaskId::from_bytes(row.get(0)?),
        principal: PrincipalId(row.get(1)?),
        agent: AgentId(row.get(2)?),
        owner: PrincipalId(row.get(3)?),
        context: row.get::<_, String>(4)?.into(),
        kind: kind_of(state),
        state: TaskState::from_number(i64::from(state)).unwrap_or_default(),
        status_at: Millis(row.get(6)?),
        created_at: Millis(row.get(7)?),
        version: row.get::<_, i64>(8)? as u64,
        seq: row.get::<_, i64>(9)? as u64,
        peer_seq: row.get::<_, i64>(10)? as u64,
        run: row.get(11)?,
        run_state: run_of(run_state),
        turn: row.get(13)?,
        waiting: row.get(14)?,
        deadline: row.get::<_, Option<i64>>(15)?.map(Millis),
        origin: origin_of(row, 16)?,
        open_approvals: open_approvals(&row.get::<_, Option<Vec<u8>>>(17)?.unwrap_or_default()),
        bytes: row.get::<_, i64>(22)? as u64,
    })
}

/// Ids one after the other.
pub fn open_approvals(bytes: &[u8]) -> Vec<ApprovalId> {
    bytes.chunks_exact(16).filter_map(|id| id.try_into().ok()).map(ApprovalId::from_bytes).collect()
}

fn origin_of(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Arc<Origin>>> {
    let Some(text) = row.get::<_, Option<String>>(column)? else { return Ok(None) };
    let unread = |error| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error));
    serde_json::from_str(&text).map(|origin| Some(Arc::new(origin))).map_err(unread)
}

/// The scope as a condition on `tasks`, with its values.
fn condition(scope: Scope) -> (&'static str, Vec<Value>) {
    match scope {
        Scope::Caller { principal, agent } => {
            (" AND principal = ? AND agent = ?", vec![principal.0.into(), agent.0.into()])
        }
        Scope::Own { principal } => (" AND principal = ?", vec![principal.0.into()]),
        Scope::Agent { owner } => (" AND owner = ?", vec![owner.0.into()]),
        Scope::Admin => ("", Vec::new()),
    }
}

pub fn head(connection: &Connection, scope: Scope, id: TaskId) -> Result<Option<Head>, Fault> {
    Ok(stored(connection, scope, id)?.map(|stored| stored.head))
}

pub fn stored(connection: &Connection, scope: Scope, id: TaskId) -> Result<Option<Stored>, Fault> {
    let (limits, mut values) = condition(scope);
    values.insert(0, Value::Blob(id.bytes().to_vec()));
    let sql = format!("SELECT {COLUMNS} FROM tasks WHERE id = ?{limits}");
    let mut statement = connection.prepare_cached(&sql).map_err(fault("reading a task"))?;
    statement.query_row(rusqlite::params_from_iter(values), stored_of).optional().map_err(fault("reading a task"))
}

/// Ids grow with time, so the oldest come first.
pub fn children(connection: &Connection, scope: Scope, parent: TaskId, limit: usize) -> Result<Vec<Head>, Fault> {
    let (limits, mut values) = condition(scope);
    values.insert(0, Value::Blob(parent.bytes().to_vec()));
    let sql = format!("SELECT {COLUMNS} FROM tasks WHERE parent_task_id = ?{limits} ORDER BY id LIMIT {limit}");
    let mut statement = connection.prepare_cached(&sql).map_err(fault("reading delegated tasks"))?;
    let rows = statement.query_map(rusqlite::params_from_iter(values), head_of).and_then(Iterator::collect);
    rows.map_err(fault("reading delegated tasks"))
}

/// A task with all that is needed to fold it.
pub fn record(connection: &Connection, scope: Scope, id: TaskId, most: u64) -> Unless<Option<Record>> {
    match stored(connection, scope, id)? {
        None => Ok(Some(None)),
        Some(stored) if stored.size() > most => Ok(None),
        Some(stored) => fill(connection, stored, true).map(|(record, _)| Some(Some(record))),
    }
}

/// The same to be shown: a long log is folded as it is read.
pub fn shown(connection: &Connection, scope: Scope, id: TaskId, view: View, most: u64) -> Unless<Option<Record>> {
    match stored(connection, scope, id)? {
        None => Ok(Some(None)),
        Some(stored) if stored.size() > most => Ok(None),
        Some(stored) => fill_shown(connection, stored, true, view).map(|(record, _)| Some(Some(record))),
    }
}

/// Adds the fold and the changes to a head, and says how large they are. Without artifacts, rows that hold nothing
/// else are not read.
pub fn fill(connection: &Connection, stored: Stored, with_artifacts: bool) -> Result<(Record, usize), Fault> {
    let Stored { head, last_change, folded, .. } = stored;
    let fold = if folded { fold(connection, head.id)? } else { None };
    let (fold, folded_size) = fold.map_or((None, 0), |(fold, size)| (Some(fold), size));
    let from = fold.as_ref().map_or(0, |folded| folded.seq);
    let (changes, size) = if with_artifacts {
        chain::read_back(connection, last_change, from)?
    } else {
        let links = chain::links(connection, last_change, |link| link.last_seq > from)?;
        chain::read(connection, links.iter().filter(|link| !link.artifacts_only), usize::MAX)?
    };
    Ok((Record { head, fold, changes }, folded_size + size))
}

/// Adds the fold of a whole log to a head where it is long, or else its changes.
pub fn fill_shown(
    connection: &Connection,
    stored: Stored,
    with_artifacts: bool,
    view: View,
) -> Result<(Record, usize), Fault> {
    if stored.size() <= LONG {
        return fill(connection, stored, with_artifacts);
    }
    let Stored { head, last_change, folded, .. } = stored;
    let start = if folded { fold(connection, head.id)? } else { None };
    let (start, mut size) = start.map_or((None, 0), |(fold, size)| (Some(fold), size));
    let from = start.as_ref().map_or(0, |folded| folded.seq);
    let Folded { mut fold, from: mut asked_by, .. } =
        start.unwrap_or_else(|| Folded { seq: 0, peer_seq: 0, fold: Fold::default(), from: None });
    let links = chain::links(connection, last_change, |link| link.last_seq > from)?;
    let wanted = links.iter().filter(|link| with_artifacts || !link.artifacts_only);
    size += chain::each(connection, wanted, |change| {
        if asked_by.is_none() {
            asked_by = change.events.iter().find_map(|event| match event {
                Event::Asked { from, .. } => Some(from.clone()),
                _ => None,
            });
        }
        let goes_on = fold.change(&change, view.until);
        if let Some(most) = view.history {
            fold.keep_latest(most);
        }
        goes_on
    })?;
    let folded = Folded { seq: head.seq, peer_seq: head.peer_seq, fold, from: asked_by };
    Ok((Record { head, fold: Some(folded), changes: Vec::new() }, size))
}

/// Which of the two numbers a cursor counts in.
pub enum By {
    Seq(u64),
    PeerSeq(u64),
}

pub fn after(connection: &mut Connection, scope: Scope, id: TaskId, by: By, limit: usize) -> Result<Tail, Fault> {
    let Some(stored) = stored(connection, scope, id)? else { return Ok(Tail::Pruned) };
    let (pruned, cursor) = match by {
        By::Seq(cursor) => (stored.pruned_seq, cursor),
        By::PeerSeq(cursor) => (stored.pruned_peer_seq, cursor),
    };
    if cursor < pruned {
        return Ok(Tail::Pruned);
    }
    let links = chain::links(connection, stored.last_change, |link| match by {
        By::Seq(_) => link.last_seq > cursor,
        By::PeerSeq(_) => link.last_peer_seq > cursor,
    })?;
    let shown = links.iter().filter(|link| matches!(by, By::Seq(_)) || link.visible);
    let most = match by {
        By::Seq(_) => LOG_BYTES,
        By::PeerSeq(_) => TAIL_BYTES,
    };
    let (changes, _) = chain::read(connection, shown.take(limit), most)?;
    Ok(Tail::Changes(changes))
}

pub fn earlier(
    connection: &mut Connection,
    principal: PrincipalId,
    agent: AgentId,
    context: &str,
    before: TaskId,
) -> Result<Vec<Record>, Fault> {
    let sql = format!(
        "SELECT {COLUMNS} FROM tasks INDEXED BY tasks_by_context \
         WHERE principal = ?1 AND agent = ?2 AND context = ?3 AND id < ?4 ORDER BY id DESC LIMIT ?5"
    );
    let found: Vec<Stored> = {
        let mut statement = connection.prepare_cached(&sql).map_err(fault("reading a context"))?;
        let values = params![principal.0, agent.0, context, before.bytes(), EARLIER as i64];
        let rows = statement.query_map(values, stored_of);
        rows.and_then(Iterator::collect).map_err(fault("reading a context"))?
    };
    found.into_iter().map(|stored| fill(connection, stored, false).map(|(record, _)| record)).collect()
}

pub fn open_runs(connection: &mut Connection) -> Result<Vec<TaskId>, Fault> {
    let mut statement = connection
        .prepare("SELECT id FROM tasks INDEXED BY tasks_running WHERE run_state > 0 ORDER BY id")
        .map_err(fault("looking for open runs"))?;
    let ids = statement.query_map([], |row| row.get(0).map(TaskId::from_bytes));
    ids.and_then(Iterator::collect).map_err(fault("looking for open runs"))
}

/// By the counters, so that the cost does not grow with the tasks that have ended.
pub fn waiting(connection: &mut Connection) -> Result<Vec<(TaskId, AgentId)>, Fault> {
    let sql = "SELECT t.id, t.agent FROM counters c CROSS JOIN tasks t INDEXED BY tasks_by_status \
               ON t.principal = c.principal AND t.agent = c.agent AND t.state = c.state AND t.state BETWEEN 1 AND 8 \
               WHERE c.state IN (6, 8) AND c.n > 0 AND t.run_state = 0";
    let mut statement = connection.prepare(sql).map_err(fault("looking for tasks that wait"))?;
    let rows = statement.query_map([], |row| Ok((TaskId::from_bytes(row.get(0)?), AgentId(row.get(1)?))));
    rows.and_then(Iterator::collect).map_err(fault("looking for tasks that wait"))
}

pub fn deadlines(connection: &mut Connection) -> Result<Vec<(TaskId, Millis)>, Fault> {
    let sql = "SELECT id, deadline FROM tasks INDEXED BY tasks_with_deadline \
               WHERE deadline IS NOT NULL AND state IN (0, 1, 2, 6, 8)";
    let mut statement = connection.prepare(sql).map_err(fault("looking for deadlines"))?;
    let rows = statement.query_map([], |row| Ok((TaskId::from_bytes(row.get(0)?), Millis(row.get(1)?))));
    rows.and_then(Iterator::collect).map_err(fault("looking for deadlines"))
}

/// A fold as it is stored.
#[derive(Serialize, Deserialize)]
struct FoldRow {
    status: TaskStatus,
    artifacts: Vec<Arc<Artifact>>,
    history: Vec<Arc<Message>>,
    answer: Option<Arc<Message>>,
    #[serde(default)]
    upstream: Upstream,
    #[serde(default)]
    metadata: Option<Object>,
    #[serde(default)]
    unknown: Unknown,
}

fn fold(connection: &Connection, id: TaskId) -> Result<Option<(Folded, usize)>, Fault> {
    let mut statement = connection
        .prepare_cached("SELECT seq, peer_seq, fold FROM folds WHERE task = ?1")
        .map_err(fault("reading a fold"))?;
    let row = statement
        .query_row([id.bytes()], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, String>(2)?)))
        .optional()
        .map_err(fault("reading a fold"))?;
    let Some((seq, peer_seq, text)) = row else { return Ok(None) };
    let row: FoldRow = serde_json::from_str(&text).map_err(|error| Fault::new(format!("decoding a fold: {error}")))?;
    let FoldRow { status, artifacts, history, answer, upstream, metadata, unknown } = row;
    let fold = Fold { status, artifacts, history, answer, upstream, metadata, unknown };
    Ok(Some((Folded { seq: seq as u64, peer_seq: peer_seq as u64, fold, from: None }, text.len())))
}

pub fn write_fold(connection: &Connection, head: &Head, fold: Fold) -> Result<(), Fault> {
    let Fold { status, artifacts, history, answer, upstream, metadata, unknown } = fold;
    let text = serde_json::to_string(&FoldRow { status, artifacts, history, answer, upstream, metadata, unknown })
        .map_err(|error| Fault::new(format!("encoding a fold: {error}")))?;
    connection
        .execute(
            "INSERT OR REPLACE INTO folds (task, seq, peer_seq, fold) VALUES (?1, ?2, ?3, ?4)",
            params![head.id.bytes(), head.seq as i64, head.peer_seq as i64, text],
        )
        .map_err(fault("writing a fold"))?;
    connection
        .execute("UPDATE tasks SET folded = 1 WHERE id = ?1", [head.id.bytes()])
        .map(|_| ())
        .map_err(fault("writing a fold"))
}
