-- A store as schema version 3 wrote it. Never edited once that version is released.
PRAGMA application_id = 1179406164;
PRAGMA user_version = 3;

CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE workspaces (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE principals (
    id INTEGER PRIMARY KEY, workspace INTEGER NOT NULL, name TEXT NOT NULL, UNIQUE (workspace, name)
);
CREATE TABLE keys (
    id INTEGER PRIMARY KEY, workspace INTEGER NOT NULL, name TEXT NOT NULL, principal INTEGER NOT NULL,
    hash BLOB NOT NULL UNIQUE, scopes TEXT NOT NULL, agents TEXT,
    created_at INTEGER NOT NULL, expires_at INTEGER, revoked_at INTEGER, replaces TEXT,
    UNIQUE (workspace, name)
);
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

CREATE TRIGGER keys_added AFTER INSERT ON keys
    BEGIN UPDATE meta SET value = value + 1 WHERE name = 'keys_revision'; END;
CREATE TRIGGER keys_changed AFTER UPDATE ON keys
    BEGIN UPDATE meta SET value = value + 1 WHERE name = 'keys_revision'; END;
CREATE TRIGGER keys_removed AFTER DELETE ON keys
    BEGIN UPDATE meta SET value = value + 1 WHERE name = 'keys_revision'; END;

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
INSERT INTO meta (name, value) VALUES ('epoch', '0123456789ab'), ('keys_revision', '1');
INSERT INTO workspaces (id, name) VALUES (1, 'default');
INSERT INTO principals (id, workspace, name) VALUES (1, 1, 'owner'), (2, 1, 'anonymous'), (7, 1, 'caller');
INSERT INTO keys (id, workspace, name, principal, hash, scopes, agents, created_at)
    VALUES (1, 1, 'caller', 7, x'0303030303030303030303030303030303030303030303030303030303030303',
        'agents:read tasks:read tasks:write push:write', '["echo"]', 1700000000000);
INSERT INTO agents (id, name, owner) VALUES (3, 'echo', 1);
INSERT INTO tasks (id, principal, agent, owner, context, state, status_at, created_at, version, seq, peer_seq, run,
        run_state, turn, waiting, last_change)
    VALUES (x'018bcfe5680070008000000000000001', 7, 3, 1, 'context', 3, 1700000000001, 1700000000000, 2, 6, 3, 1, 0, 1, 0, 2),
        (x'018bcfe5680070008000000000000002', 7, 3, 1, 'context', 2, 1700000000003, 1700000000002, 2, 5, 2, 1, 2, 1, 0, 4);
INSERT INTO changes (id, before, seq, last_seq, peer_seq, last_peer_seq, at, artifacts_only, events)
    VALUES (1, NULL, 1, 3, 1, 1, 1700000000000, 0,
            '[{"asked":{"message":{"messageId":"m-1","role":"ROLE_USER","parts":[{"text":"hello"}]}}},{"opened":{}},{"run_queued":{"run":1}}]'),
        (2, 1, 4, 6, 2, 3, 1700000000001, 0,
            '[{"run_started":{"run":1}},{"produced":{"chunk":{"artifact":{"artifactId":"a","parts":[{"text":"hello, too"}]},"last_chunk":true}}},{"status":{"state":"TASK_STATE_COMPLETED"}}]'),
        (3, NULL, 1, 3, 1, 1, 1700000000002, 0,
            '[{"asked":{"message":{"messageId":"m-2","role":"ROLE_USER","parts":[{"text":"wait"}]}}},{"opened":{}},{"run_queued":{"run":1}}]'),
        (4, 3, 4, 5, 2, 2, 1700000000003, 0,
            '[{"run_started":{"run":1}},{"status":{"state":"TASK_STATE_WORKING"}}]');
INSERT INTO sends (key, hash, task, at)
    VALUES (x'0101010101010101010101010101010101010101010101010101010101010101',
        x'0202020202020202020202020202020202020202020202020202020202020202',
        x'018bcfe5680070008000000000000001', 1700000000000);
INSERT INTO counters (principal, agent, state, n) VALUES (7, 3, 2, 1), (7, 3, 3, 1);
INSERT INTO push_configs (uid, task, id, principal, agent, owner, url, origin, scheme, sealed, options, created_at, cursor,
        state, failures, next_at, attempts, reason, generation)
    VALUES (x'018bcfe5680070008000000000000003', x'018bcfe5680070008000000000000002', 'c', 7, 3, 1, 'https://example.com/c',
        'https://example.com', '', x'', '{}', 1700000000004, 2, 0, 0, NULL, 0, '', 0);
