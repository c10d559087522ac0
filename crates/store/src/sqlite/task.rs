//! Tasks and their changes as rows.

use super::fault;
use super::send::Sends;
use flotilla_core::caller::Scope;
use flotilla_core::error::Fault;
use flotilla_core::ids::{AgentId, PrincipalId, TaskId};
use flotilla_core::log;
use flotilla_core::ports::{Commit, Folded, NotCommitted, Record, Tail};
use flotilla_core::project::Fold;
use flotilla_core::task::{Head, Kind, RunState};
use flotilla_protocol::a2a::model::{Artifact, Message, TaskState, TaskStatus};
use flotilla_protocol::event::{Change, Event};
use flotilla_protocol::time::Millis;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The columns `head_of` reads, in its order.
pub const HEAD: &str = "id, principal, agent, owner, context, state, status_at, created_at, version, seq, peer_seq, \
                        run, run_state, turn, waiting";

/// Writes one commit inside the batch's transaction; what does not fit is skipped, not failed.
pub fn write(connection: &Connection, sends: &mut Sends, commit: &Commit) -> Result<Result<(), NotCommitted>, Fault> {
    let head = &commit.head;
    if let Some(dedupe) = &commit.dedupe
        && let Some(sent) = sends.add(connection, dedupe, head.id, commit.change.at)?
    {
        return Ok(Err(NotCommitted::Duplicate(sent)));
    }
    let written = if head.version == 1 { insert(connection, head)? } else { update(connection, head)? };
    if !written {
        if let Some(dedupe) = &commit.dedupe {
            sends.take_back(connection, &dedupe.key)?;
        }
        return Ok(Err(NotCommitted::Stale));
    }
    append(connection, head.id, &commit.change, &commit.body)?;
    Ok(Ok(()))
}

fn insert(connection: &Connection, head: &Head) -> Result<bool, Fault> {
    let sql = "INSERT INTO tasks (id, principal, agent, owner, context, state, status_at, created_at, version, seq, \
               peer_seq, run, run_state, turn, waiting) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15) ON CONFLICT DO NOTHING";
    let mut statement = connection.prepare_cached(sql).map_err(fault("adding a task"))?;
    let added = statement.execute(params![
        head.id.bytes(),
        head.principal.0,
        head.agent.0,
        head.owner.0,
        &*head.context,
        head.state_code(),
        head.status_at.0,
        head.created_at.0,
        head.version as i64,
        head.seq as i64,
        head.peer_seq as i64,
        head.run,
        run_code(head.run_state),
        head.turn,
        head.waiting,
    ]);
    Ok(added.map_err(fault("adding a task"))? == 1)
}

/// Only against the version the decision saw.
fn update(connection: &Connection, head: &Head) -> Result<bool, Fault> {
    let sql = "UPDATE tasks SET state = ?2, status_at = ?3, version = ?4, seq = ?5, peer_seq = ?6, run = ?7, \
               run_state = ?8, turn = ?9, waiting = ?10 WHERE id = ?1 AND version = ?4 - 1";
    let mut statement = connection.prepare_cached(sql).map_err(fault("changing a task"))?;
    let changed = statement.execute(params![
        head.id.bytes(),
        head.state_code(),
        head.status_at.0,
        head.version as i64,
        head.seq as i64,
        head.peer_seq as i64,
        head.run,
        run_code(head.run_state),
        head.turn,
        head.waiting,
    ]);
    Ok(changed.map_err(fault("changing a task"))? == 1)
}

fn append(connection: &Connection, id: TaskId, change: &Change, body: &[u8]) -> Result<(), Fault> {
    let sql = "INSERT INTO changes (task, seq, last_seq, peer_seq, last_peer_seq, at, artifacts_only, events) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let mut statement = connection.prepare_cached(sql).map_err(fault("appending to a log"))?;
    let text = std::str::from_utf8(body).map_err(|_| Fault::new("events that are not text"))?;
    let artifacts_only = change.events.iter().all(|e| matches!(e, Event::Produced { .. } | Event::Noted { .. }));
    let appended = statement.execute(params![
        id.bytes(),
        change.first_seq as i64,
        change.last_seq() as i64,
        change.first_peer_seq as i64,
        change.last_peer_seq() as i64,
        change.at.0,
        artifacts_only,
        text,
    ]);
    appended.map(|_| ()).map_err(fault("appending to a log"))
}

fn run_code(state: RunState) -> u8 {
    match state {
        RunState::Idle => 0,
        RunState::Claimed => 1,
        RunState::Started => 2,
    }
}

pub fn head_of(row: &Row<'_>) -> rusqlite::Result<Head> {
    let state: u8 = row.get(5)?;
    let run_state: u8 = row.get(12)?;
    Ok(Head {
        id: TaskId::from_bytes(row.get(0)?),
        principal: PrincipalId(row.get(1)?),
        agent: AgentId(row.get(2)?),
        owner: PrincipalId(row.get(3)?),
        context: row.get::<_, String>(4)?.into(),
        kind: match state {
            0 => Kind::Undecided,
            9 => Kind::Message,
            _ => Kind::Task,
        },
        state: TaskState::from_number(i64::from(state)).unwrap_or_default(),
        status_at: Millis(row.get(6)?),
        created_at: Millis(row.get(7)?),
        version: row.get::<_, i64>(8)? as u64,
        seq: row.get::<_, i64>(9)? as u64,
        peer_seq: row.get::<_, i64>(10)? as u64,
        run: row.get(11)?,
        run_state: match run_state {
            0 => RunState::Idle,
            1 => RunState::Claimed,
            _ => RunState::Started,
        },
        turn: row.get(13)?,
        waiting: row.get(14)?,
    })
}

/// The scope as a condition on `tasks`, with its values.
fn condition(scope: Scope) -> (&'static str, Vec<Value>) {
    match scope {
        Scope::Caller { principal, agent } => {
            (" AND principal = ? AND agent = ?", vec![principal.0.into(), agent.0.into()])
        }
        Scope::Agent { owner } => (" AND owner = ?", vec![owner.0.into()]),
        Scope::Admin => ("", Vec::new()),
    }
}

pub fn head(connection: &Connection, scope: Scope, id: TaskId) -> Result<Option<Head>, Fault> {
    let (limits, mut values) = condition(scope);
    values.insert(0, Value::Blob(id.bytes().to_vec()));
    let sql = format!("SELECT {HEAD} FROM tasks WHERE id = ?{limits}");
    let mut statement = connection.prepare_cached(&sql).map_err(fault("reading a task"))?;
    statement.query_row(rusqlite::params_from_iter(values), head_of).optional().map_err(fault("reading a task"))
}

/// A task with all that is needed to fold it, as of one moment.
pub fn record(connection: &mut Connection, scope: Scope, id: TaskId) -> Result<Option<Record>, Fault> {
    let transaction = connection.transaction().map_err(fault("reading a task"))?;
    let Some(head) = head(&transaction, scope, id)? else { return Ok(None) };
    fill(&transaction, head, true).map(|(record, _)| Some(record))
}

/// Adds the fold and the changes to a head, and says how large they are. Without artifacts, rows that hold nothing
/// else are not read.
pub fn fill(connection: &Connection, head: Head, with_artifacts: bool) -> Result<(Record, usize), Fault> {
    let fold = if head.version > super::schema::LONG_LOG || head.is_over() { fold(connection, head.id)? } else { None };
    let (fold, folded_size) = fold.map_or((None, 0), |(fold, size)| (Some(fold), size));
    let from = fold.as_ref().map_or(0, |folded| folded.seq);
    let sql = "SELECT seq, peer_seq, at, events FROM changes \
               WHERE task = ?1 AND seq > ?2 AND (?3 OR artifacts_only = 0) ORDER BY seq";
    let mut statement = connection.prepare_cached(sql).map_err(fault("reading a log"))?;
    let rows = statement.query_map(params![head.id.bytes(), from as i64, with_artifacts], raw_change);
    let (changes, size) = collect(rows.map_err(fault("reading a log"))?)?;
    Ok((Record { head, fold, changes }, folded_size + size))
}

type RawChange = (i64, i64, i64, String);

fn raw_change(row: &Row<'_>) -> rusqlite::Result<RawChange> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
}

/// The changes, and the size of their events.
fn collect(rows: impl Iterator<Item = rusqlite::Result<RawChange>>) -> Result<(Vec<Arc<Change>>, usize), Fault> {
    let (mut changes, mut size) = (Vec::new(), 0);
    for row in rows {
        let (seq, peer_seq, at, events) = row.map_err(fault("reading a log"))?;
        size += events.len();
        changes.push(Arc::new(Change {
            first_seq: seq as u64,
            first_peer_seq: peer_seq as u64,
            at: Millis(at),
            events: log::decode(events.as_bytes())?,
        }));
    }
    Ok((changes, size))
}

/// Which of the two numbers a cursor counts in.
pub enum By {
    Seq(u64),
    PeerSeq(u64),
}

pub fn after(connection: &mut Connection, scope: Scope, id: TaskId, by: By, limit: usize) -> Result<Tail, Fault> {
    let transaction = connection.transaction().map_err(fault("reading a log"))?;
    let Some(head) = head(&transaction, scope, id)? else { return Ok(Tail::Pruned) };
    let (condition, pruned, cursor) = match by {
        By::Seq(cursor) => ("last_seq > ?2", "pruned_seq", cursor),
        // A change without a visible event ends before it begins.
        By::PeerSeq(cursor) => ("last_peer_seq > ?2 AND last_peer_seq >= peer_seq", "pruned_peer_seq", cursor),
    };
    let sql = format!("SELECT {pruned} FROM tasks WHERE id = ?1");
    let pruned: i64 = transaction.query_row(&sql, [id.bytes()], |row| row.get(0)).map_err(fault("reading a log"))?;
    if cursor < pruned as u64 {
        return Ok(Tail::Pruned);
    }
    let sql =
        format!("SELECT seq, peer_seq, at, events FROM changes WHERE task = ?1 AND {condition} ORDER BY seq LIMIT ?3");
    let mut statement = transaction.prepare_cached(&sql).map_err(fault("reading a log"))?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = statement.query_map(params![head.id.bytes(), cursor as i64, limit], raw_change);
    let (changes, _) = collect(rows.map_err(fault("reading a log"))?)?;
    Ok(Tail::Changes(changes))
}

pub fn open_runs(connection: &mut Connection) -> Result<Vec<TaskId>, Fault> {
    let mut statement = connection
        .prepare("SELECT id FROM tasks INDEXED BY tasks_running WHERE run_state > 0 ORDER BY id")
        .map_err(fault("looking for open runs"))?;
    let ids = statement.query_map([], |row| row.get(0).map(TaskId::from_bytes));
    ids.and_then(Iterator::collect).map_err(fault("looking for open runs"))
}

/// A fold as it is stored.
#[derive(Serialize, Deserialize)]
struct FoldRow {
    status: TaskStatus,
    artifacts: Vec<Arc<Artifact>>,
    history: Vec<Arc<Message>>,
    answer: Option<Arc<Message>>,
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
    let fold = Fold { status: row.status, artifacts: row.artifacts, history: row.history, answer: row.answer };
    Ok(Some((Folded { seq: seq as u64, peer_seq: peer_seq as u64, fold }, text.len())))
}

pub fn write_fold(connection: &Connection, head: &Head, fold: Fold) -> Result<(), Fault> {
    let Fold { status, artifacts, history, answer } = fold;
    let text = serde_json::to_string(&FoldRow { status, artifacts, history, answer })
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
