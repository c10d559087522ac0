//! The schema of a SQLite store: every released version is brought up to date, a newer one is refused.

use crate::author::{AGENT, CALLER, folded, keep};
use crate::home::{File, Home};
use flotilla_core::caller::Scope;
use flotilla_core::ids::{PrincipalId, TaskId, WorkspaceId};
use flotilla_core::key::FullName;
use flotilla_core::ports::{ListFilter, Tail};
use flotilla_core::rights::Rights;
use flotilla_protocol::a2a::model::TaskState;
use flotilla_protocol::a2a::version::Version;
use flotilla_protocol::time::Millis;
use flotilla_store::sqlite::{SCHEMA_VERSION, Sqlite, Sync};
use rusqlite::Connection;
use std::path::Path;

/// A store as each release wrote it: one caller (7), one agent (3), a completed task and an open one.
const RELEASED: [&str; 3] =
    [include_str!("released/1.sql"), include_str!("released/2.sql"), include_str!("released/3.sql")];
/// The schema this program writes; versions after the last release are not in any store yet.
const LATEST: i64 = SCHEMA_VERSION;
/// Marks a file as a Flotilla store: "FLOT".
const APPLICATION_ID: i64 = 0x464c_4f54;

fn number(path: &Path, pragma: &str) -> i64 {
    Connection::open(path).unwrap().pragma_query_value(None, pragma, |row| row.get(0)).unwrap()
}

/// Everything the schema declares, in one spelling.
fn declared(path: &Path) -> Vec<String> {
    let connection = Connection::open(path).unwrap();
    let mut statement =
        connection.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name").unwrap();
    let rows = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
    rows.map(|sql| sql.unwrap().split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

fn as_released(index: usize) -> File {
    let home = File::new();
    Connection::open(home.store()).unwrap().execute_batch(RELEASED[index]).unwrap();
    assert_eq!(number(&home.store(), "user_version"), index as i64 + 1);
    home
}

#[tokio::test]
async fn a_new_store_has_the_latest_schema() {
    let home = File::new();
    drop(home.open());
    assert_eq!(
        number(&home.store(), "user_version"),
        LATEST,
        "each version needs a released/N.sql once it is released"
    );
    assert_eq!(number(&home.store(), "application_id"), APPLICATION_ID);
    assert_eq!(number(&home.store(), "page_size"), 8192);
    assert_eq!(
        Connection::open(home.store()).unwrap().pragma_query_value(None, "journal_mode", |row| row.get::<_, String>(0)),
        Ok("wal".to_owned())
    );
}

#[tokio::test]
async fn every_released_version_becomes_the_latest() {
    let fresh = File::new();
    drop(fresh.open());
    for index in 0..RELEASED.len() {
        let home = as_released(index);
        drop(home.open());
        assert_eq!(number(&home.store(), "user_version"), LATEST);
        assert_eq!(number(&home.store(), "page_size"), 4096, "it keeps its own");
        assert_eq!(declared(&home.store()), declared(&fresh.store()), "version {}: never edit a migration", index + 1);
    }
}

#[tokio::test]
async fn what_an_earlier_release_wrote_is_still_there() {
    for index in 0..RELEASED.len() {
        let home = as_released(index);
        let store = home.open();
        assert_eq!(store.epoch().0, "0123456789ab");
        let filter = ListFilter { limit: 10, with_artifacts: true, ..ListFilter::default() };
        let page = store.list(CALLER, AGENT, filter).await.unwrap();
        assert_eq!((page.total, page.records.len()), (2, 2));
        let [open, done] = &page.records[..] else { panic!("two tasks") };
        assert_eq!((open.head.state, done.head.state), (TaskState::Working, TaskState::Completed));
        let fold = folded(done);
        assert_eq!(fold.history[0].parts[0].text.as_deref(), Some("hello"));
        assert_eq!(fold.artifacts[0].parts[0].text.as_deref(), Some("hello, too"));
        assert_eq!((&open.head.origin, open.head.deadline), (&None, None), "nobody told then");
        assert_eq!((store.deadlines().await.unwrap(), store.hub_id().len()), (Vec::new(), 32));
        assert_eq!(store.open_runs().await.unwrap(), [open.head.id]);
        assert_eq!(store.sent([1; 32]).await.unwrap().map(|sent| sent.task), Some(done.head.id));
        let key = store.key([3; 32]).await.unwrap().unwrap();
        assert_eq!((key.principal.id, key.principal.workspace), (CALLER, WorkspaceId::DEFAULT));
        assert_eq!((key.rights, key.agents), (Rights::CALLER, Some(vec!["echo".to_owned()])));
        let owner = store.principal(FullName::owner()).await.unwrap();
        assert_eq!(owner.id, PrincipalId::OWNER);
        match store.after_peer(Scope::Admin, done.head.id, 1, 10).await.unwrap() {
            Tail::Changes(changes) => assert_eq!(changes.len(), 1),
            Tail::Pruned => panic!("nothing was pruned"),
        }
        let task = keep(&store, TaskId::fresh(), "say! work chunk done", 1).await;
        let record = store.record(Scope::Admin, task.id()).await.unwrap().unwrap();
        assert_eq!(record.changes, task.log);
    }
}

#[tokio::test]
async fn the_first_schemas_keys_may_do_what_they_could() {
    let home = as_released(0);
    let keys = "INSERT INTO keys (name, hash, principal, created_at, revoked_at) \
                VALUES ('owner', ?1, 1, 5, NULL), ('gone', ?2, 7, 6, 7)";
    Connection::open(home.store()).unwrap().execute(keys, [[8; 32], [9; 32]]).unwrap();
    let store = home.open();
    let (owner, gone) = (store.key([8; 32]).await.unwrap().unwrap(), store.key([9; 32]).await.unwrap().unwrap());
    assert!(owner.is_owners() && owner.is_live(Millis(9)));
    assert_eq!((owner.rights, owner.name.to_string().as_str(), owner.agents), (Rights::ALL, "owner", None));
    assert_eq!((gone.rights, gone.revoked_at, gone.created_at), (Rights::CALLER, Some(Millis(7)), Millis(6)));
    assert_eq!(store.keys().await.unwrap().len(), 3);
}

#[tokio::test]
async fn push_configs_from_before_versions_are_of_1_0() {
    let home = as_released(2);
    let store = home.open();
    let hooks = store.active_hooks(None, 10).await.unwrap();
    let versions: Vec<_> = hooks.iter().map(|(hook, _)| (hook.id.as_str(), hook.version)).collect();
    assert_eq!(versions, [("c", Version::V10)]);
}

#[tokio::test]
async fn a_newer_store_is_refused_and_left_alone() {
    let home = File::new();
    drop(home.open());
    let newer = LATEST + 1;
    Connection::open(home.store()).unwrap().pragma_update(None, "user_version", newer).unwrap();
    let before = declared(&home.store());
    let refused = Sqlite::open(&home.store(), Sync::Full).err().expect("refused").to_string();
    assert!(refused.contains("newer Flotilla") && refused.contains(&newer.to_string()), "{refused}");
    assert_eq!((declared(&home.store()), number(&home.store(), "user_version")), (before, newer));
}

#[tokio::test]
async fn what_is_no_store_is_refused_and_left_alone() {
    let home = File::new();
    std::fs::write(home.store(), "not a database ".repeat(500)).unwrap();
    assert!(Sqlite::open(&home.store(), Sync::Full).is_err());
    assert_eq!(std::fs::read_to_string(home.store()).unwrap().len(), 7_500);
    let foreign = home.path("foreign.db");
    Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE notes (text TEXT)").unwrap();
    assert!(Sqlite::open(&foreign, Sync::Full).is_err(), "the database of another program");
    assert_eq!(declared(&foreign), ["CREATE TABLE notes (text TEXT)"]);
}
