//! The schema, as numbered migrations: a store of any earlier release is brought up to date when it is opened.

use super::fault;
use flotilla_core::error::Fault;
use flotilla_core::log::Epoch;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

/// Marks the file as ours ("FLOT").
pub const APPLICATION_ID: i32 = 0x464c_4f54;

/// Each entry takes the schema one version up. Never edit one that was released.
const MIGRATIONS: &[&str] = &[
    "
    CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE principals (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, admin INTEGER NOT NULL);
    INSERT INTO principals (id, name, admin) VALUES (1, 'owner', 1), (2, 'anonymous', 0);
    CREATE TABLE keys (
        name TEXT PRIMARY KEY, hash BLOB NOT NULL UNIQUE, principal INTEGER NOT NULL,
        agents TEXT, created_at INTEGER NOT NULL, revoked_at INTEGER
    ) WITHOUT ROWID;
    CREATE TABLE agents (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, owner INTEGER NOT NULL);

    CREATE TABLE tasks (
        id BLOB PRIMARY KEY,
        principal INTEGER NOT NULL, agent INTEGER NOT NULL, owner INTEGER NOT NULL, context TEXT NOT NULL,
        state INTEGER NOT NULL, status_at INTEGER NOT NULL, created_at INTEGER NOT NULL,
        version INTEGER NOT NULL, seq INTEGER NOT NULL, peer_seq INTEGER NOT NULL,
        run INTEGER NOT NULL, run_state INTEGER NOT NULL, turn INTEGER NOT NULL, waiting INTEGER NOT NULL,
        last_change INTEGER, folded INTEGER NOT NULL DEFAULT 0, pruned_seq INTEGER NOT NULL DEFAULT 0,
        pruned_peer_seq INTEGER NOT NULL DEFAULT 0,
        parent_task_id BLOB, ancestry TEXT, provenance TEXT
    ) WITHOUT ROWID;
    CREATE INDEX tasks_by_status ON tasks (principal, agent, state, status_at) WHERE state BETWEEN 1 AND 8;
    CREATE INDEX tasks_by_context ON tasks (principal, agent, context);
    CREATE INDEX tasks_running ON tasks (id) WHERE run_state > 0;
    CREATE INDEX tasks_to_fold ON tasks (id) WHERE version > 32 AND folded = 0 AND state IN (3, 4, 5, 7);

    CREATE TABLE changes (
        id INTEGER PRIMARY KEY, before INTEGER, seq INTEGER NOT NULL, last_seq INTEGER NOT NULL,
        peer_seq INTEGER NOT NULL, last_peer_seq INTEGER NOT NULL,
        at INTEGER NOT NULL, artifacts_only INTEGER NOT NULL, events TEXT NOT NULL
    );
    CREATE TABLE folds (task BLOB PRIMARY KEY, seq INTEGER NOT NULL, peer_seq INTEGER NOT NULL, fold TEXT NOT NULL)
        WITHOUT ROWID;
    CREATE TABLE sends (
        id INTEGER PRIMARY KEY, key BLOB NOT NULL, hash BLOB NOT NULL, task BLOB NOT NULL, at INTEGER NOT NULL
    );
    CREATE TABLE counters (
        principal INTEGER NOT NULL, agent INTEGER NOT NULL, state INTEGER NOT NULL, n INTEGER NOT NULL,
        PRIMARY KEY (principal, agent, state)
    ) WITHOUT ROWID;
",
    "
    CREATE TABLE workspaces (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    INSERT INTO workspaces (id, name) VALUES (1, 'default');

    ALTER TABLE principals RENAME TO principals_before;
    CREATE TABLE principals (
        id INTEGER PRIMARY KEY, workspace INTEGER NOT NULL, name TEXT NOT NULL, UNIQUE (workspace, name)
    );
    INSERT INTO principals (id, workspace, name) SELECT id, 1, name FROM principals_before;

    ALTER TABLE keys RENAME TO keys_before;
    CREATE TABLE keys (
        id INTEGER PRIMARY KEY, workspace INTEGER NOT NULL, name TEXT NOT NULL, principal INTEGER NOT NULL,
        hash BLOB NOT NULL UNIQUE, scopes TEXT NOT NULL, agents TEXT,
        created_at INTEGER NOT NULL, expires_at INTEGER, revoked_at INTEGER, replaces TEXT,
        UNIQUE (workspace, name)
    );
    INSERT INTO keys (workspace, name, principal, hash, scopes, agents, created_at, revoked_at)
        SELECT 1, k.name, k.principal, k.hash,
            'agents:read tasks:read tasks:write push:write' || CASE p.admin WHEN 1 THEN ' admin' ELSE '' END,
            k.agents, k.created_at, k.revoked_at
        FROM keys_before k JOIN principals_before p ON p.id = k.principal ORDER BY k.created_at, k.name;
    DROP TABLE keys_before;
    DROP TABLE principals_before;

    INSERT INTO meta (name, value) VALUES ('keys_revision', '1');
    CREATE TRIGGER keys_added AFTER INSERT ON keys
        BEGIN UPDATE meta SET value = value + 1 WHERE name = 'keys_revision'; END;
    CREATE TRIGGER keys_changed AFTER UPDATE ON keys
        BEGIN UPDATE meta SET value = value + 1 WHERE name = 'keys_revision'; END;
    CREATE TRIGGER keys_removed AFTER DELETE ON keys
        BEGIN UPDATE meta SET value = value + 1 WHERE name = 'keys_revision'; END;
",
    "
    CREATE TABLE push_configs (
        uid BLOB PRIMARY KEY, task BLOB NOT NULL, id TEXT NOT NULL,
        principal INTEGER NOT NULL, agent INTEGER NOT NULL, owner INTEGER NOT NULL,
        url TEXT NOT NULL, origin TEXT NOT NULL, scheme TEXT NOT NULL, sealed BLOB NOT NULL, options TEXT NOT NULL,
        created_at INTEGER NOT NULL, cursor INTEGER NOT NULL, state INTEGER NOT NULL, failures INTEGER NOT NULL,
        next_at INTEGER, attempts INTEGER NOT NULL, reason TEXT NOT NULL, generation INTEGER NOT NULL,
        UNIQUE (task, id)
    ) WITHOUT ROWID;
    CREATE INDEX push_by_state ON push_configs (state, uid);
    CREATE TABLE push_attempts (
        config BLOB NOT NULL, number INTEGER NOT NULL, peer_seq INTEGER NOT NULL, at INTEGER NOT NULL,
        millis INTEGER NOT NULL, status INTEGER, delivered INTEGER NOT NULL, next_at INTEGER, reason TEXT NOT NULL,
        PRIMARY KEY (config, number)
    ) WITHOUT ROWID;
",
    "
    ALTER TABLE tasks ADD COLUMN deadline INTEGER;
    CREATE INDEX tasks_with_deadline ON tasks (deadline)
        WHERE deadline IS NOT NULL AND state IN (0, 1, 2, 6, 8);
",
    "
    ALTER TABLE push_configs ADD COLUMN version TEXT NOT NULL DEFAULT '1.0';
",
    "
    ALTER TABLE push_configs ADD COLUMN held INTEGER NOT NULL DEFAULT 0;
    UPDATE push_configs SET held = 1 WHERE state = 3 AND reason LIKE 'disabled by %';
",
    "
    CREATE TABLE registrations (
        agent INTEGER PRIMARY KEY, visibility TEXT NOT NULL, profile TEXT NOT NULL, at INTEGER NOT NULL
    );
",
    "
    CREATE TABLE added_agents (
        agent INTEGER PRIMARY KEY, settings TEXT NOT NULL, at INTEGER NOT NULL, changed_at INTEGER NOT NULL
    );
",
    "
    CREATE TABLE leases (agent INTEGER PRIMARY KEY, seconds INTEGER NOT NULL, over INTEGER NOT NULL);
",
    "
    ALTER TABLE tasks ADD COLUMN open_approvals BLOB;
    CREATE TABLE approvals (
        id BLOB PRIMARY KEY, task BLOB NOT NULL, run INTEGER NOT NULL, agent INTEGER NOT NULL, owner INTEGER NOT NULL,
        tool TEXT NOT NULL, request TEXT NOT NULL, created_at INTEGER NOT NULL, expires_at INTEGER,
        state TEXT NOT NULL, settled_at INTEGER, settled_by TEXT NOT NULL DEFAULT '', note TEXT NOT NULL DEFAULT '',
        input TEXT, always INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID;
    CREATE INDEX approvals_by_time ON approvals (created_at, id);
    CREATE INDEX approvals_by_task ON approvals (task);
    CREATE INDEX approvals_open ON approvals (created_at, id) WHERE state = 'open';

    CREATE TABLE usage (
        task BLOB NOT NULL, day INTEGER NOT NULL, agent INTEGER NOT NULL, owner INTEGER NOT NULL, context TEXT NOT NULL,
        reports INTEGER NOT NULL, input INTEGER, output INTEGER, cache_read INTEGER, cache_write INTEGER, cost INTEGER,
        gaps INTEGER NOT NULL, PRIMARY KEY (task, day)
    ) WITHOUT ROWID;
    CREATE INDEX usage_by_day ON usage (day);
    CREATE INDEX tasks_by_parent ON tasks (parent_task_id) WHERE parent_task_id IS NOT NULL;
",
    "
    CREATE TABLE workers (
        agent INTEGER PRIMARY KEY, announce TEXT NOT NULL, at INTEGER NOT NULL, draining INTEGER NOT NULL
    );
",
    "
    CREATE TABLE doers (task BLOB PRIMARY KEY, agent INTEGER NOT NULL) WITHOUT ROWID;
    ALTER TABLE usage RENAME TO usage_before;
    DROP INDEX usage_by_day;
    CREATE TABLE usage (
        task BLOB NOT NULL, day INTEGER NOT NULL, agent INTEGER NOT NULL, owner INTEGER NOT NULL, context TEXT NOT NULL,
        reports INTEGER NOT NULL, input INTEGER, output INTEGER, cache_read INTEGER, cache_write INTEGER, cost INTEGER,
        gaps INTEGER NOT NULL, PRIMARY KEY (task, day, agent)
    ) WITHOUT ROWID;
    INSERT INTO usage SELECT * FROM usage_before;
    DROP TABLE usage_before;
    CREATE INDEX usage_by_day ON usage (day);
    ALTER TABLE workers ADD COLUMN standing TEXT NOT NULL DEFAULT '{}';
",
    "
    CREATE TABLE proven_cards (agent TEXT PRIMARY KEY, place TEXT NOT NULL) WITHOUT ROWID;
",
    "
    CREATE TABLE alerts (
        id TEXT PRIMARY KEY, at INTEGER NOT NULL, task TEXT NOT NULL, body TEXT NOT NULL
    ) WITHOUT ROWID;
",
    "
    ALTER TABLE tasks ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
",
];

/// The schema version this program writes.
pub const VERSION: i64 = MIGRATIONS.len() as i64;

pub fn migrate(connection: &mut Connection) -> Result<(), Fault> {
    let found = version(connection)?;
    if found > VERSION {
        return Err(Fault::new(format!(
            "the store is of a newer Flotilla (schema {found}, this program knows {VERSION}); use that one"
        )));
    }
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(fault("locking the store for its schema"))?;
    // Asked again under the lock: another process may have been faster.
    let found = version(&transaction)?;
    for (index, statements) in MIGRATIONS.iter().enumerate().skip(usize::try_from(found).unwrap_or(0)) {
        transaction.execute_batch(statements).map_err(fault("migrating the store"))?;
        transaction.pragma_update(None, "user_version", index as i64 + 1).map_err(fault("numbering the schema"))?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(fault("marking the store"))?;
    }
    transaction.commit().map_err(fault("migrating the store"))
}

/// An empty file may become a store; the database of another program must not.
pub fn check_ours(connection: &Connection) -> Result<(), Fault> {
    let id: i32 = connection
        .pragma_query_value(None, "application_id", |row| row.get(0))
        .map_err(fault("reading the file: is this a Flotilla store?"))?;
    let things: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(fault("reading the schema: is this a Flotilla store?"))?;
    if id == APPLICATION_ID || things == 0 {
        return Ok(());
    }
    Err(Fault::new("the file is not a Flotilla store but the database of another program"))
}

pub fn version(connection: &Connection) -> Result<i64, Fault> {
    connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(fault("reading the schema's version: is this a Flotilla store?"))
}

/// The store's identity, made when it is first opened.
pub fn epoch(connection: &Connection) -> Result<Epoch, Fault> {
    identity(connection, "epoch", || crate::fresh_epoch().map(|epoch| epoch.0)).map(Epoch)
}

/// The name of the hub whose store this is, made when it is first opened. It outlives the epoch.
pub fn hub_id(connection: &Connection) -> Result<String, Fault> {
    identity(connection, "hub_id", crate::fresh_hub_id)
}

/// Of two processes that make one, both get the first.
fn identity(connection: &Connection, name: &str, fresh: fn() -> Result<String, Fault>) -> Result<String, Fault> {
    let known = || {
        let found = connection.query_row("SELECT value FROM meta WHERE name = ?1", [name], |row| row.get(0));
        found.optional().map_err(fault("reading the store's identity"))
    };
    if let Some(known) = known()? {
        return Ok(known);
    }
    let fresh = fresh()?;
    connection
        .execute("INSERT OR IGNORE INTO meta (name, value) VALUES (?1, ?2)", [name, &fresh])
        .map_err(fault("writing the store's identity"))?;
    Ok(known()?.unwrap_or(fresh))
}

/// Gives the store a new identity: cursors into the old one must not be trusted in this one.
pub fn renew_epoch(connection: &Connection) -> Result<Epoch, Fault> {
    let epoch = crate::fresh_epoch()?;
    connection
        .execute("INSERT OR REPLACE INTO meta (name, value) VALUES ('epoch', ?1)", [&epoch.0])
        .map_err(fault("writing the store's epoch"))?;
    Ok(epoch)
}
