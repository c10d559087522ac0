//! Backups of a SQLite store: a whole copy of a store in use, put back under a new epoch, or refused.

use crate::author::{AGENT, Author, CALLER, folded, id_at, keep, queue};
use crate::home::{File, Home};
use crate::random::Random;
use crate::send::{dedupe, first};
use flotilla_core::caller::Scope;
use flotilla_core::error::Fault;
use flotilla_core::ids::TaskId;
use flotilla_core::ports::ListFilter;
use flotilla_store::sqlite::{backup, restore};
use rusqlite::Connection;
use std::path::Path;

fn refusal(result: Result<(), Fault>) -> String {
    result.expect_err("refused").to_string()
}

#[tokio::test]
async fn a_backup_of_a_store_in_use_is_whole() {
    let (home, away) = (File::new(), File::new());
    let store = home.open();
    let mut random = Random::new(1);
    let mut tasks = Vec::new();
    for _ in 0..50 {
        tasks.push(keep(&store, id_at(1, &mut random), "say! work chunk done", 1).await);
    }
    let used = dedupe(&mut random);
    queue(&store, [first(&mut random, 1, used)]).remove(0).await.unwrap().unwrap();
    // More commits on their way while the copy is made: in it or not, but never in part.
    let later: Vec<Author> = (0..200).map(|_| Author::new(id_at(2, &mut random))).collect();
    let told = queue(&store, later.iter().flat_map(|task| task.clone().write("say! done", 2)));
    let (from, to) = (home.store(), away.path("copy.db"));
    tokio::task::spawn_blocking(move || backup(&from, &to)).await.unwrap().unwrap();
    for told in told {
        told.await.unwrap().unwrap();
    }
    assert_eq!(away.files(), ["copy.db"]);

    restore(&away.path("copy.db"), &away.store(), false).unwrap();
    assert_eq!(away.files(), ["copy.db", "flotilla.db"]);
    let restored = away.open();
    assert_ne!(restored.epoch(), store.epoch());
    assert_eq!(restored.hub_id(), store.hub_id(), "the same hub all the same");
    for task in &tasks {
        let record = restored.record(Scope::Admin, task.id()).await.unwrap().unwrap();
        assert_eq!((record.head, record.changes), (task.head.clone(), task.log.clone()));
    }
    assert_eq!(restored.sent(used.key).await.unwrap(), store.sent(used.key).await.unwrap());
    let mut also = 0;
    for task in &later {
        if let Some(record) = restored.record(Scope::Admin, task.id()).await.unwrap() {
            assert_eq!(record.head.version, record.changes.len() as u64);
            also += 1;
        }
    }
    let filter = ListFilter { limit: 1, ..ListFilter::default() };
    assert_eq!(restored.list(CALLER, AGENT, filter).await.unwrap().total, 50 + also);
}

#[tokio::test]
async fn a_backup_takes_the_place_of_a_store_only_when_told_to() {
    let home = File::new();
    let kept = keep(&home.open(), TaskId::fresh(), "say! work chunk done", 1).await;
    backup(&home.store(), &home.path("copy.db")).unwrap();
    let epoch = home.open().epoch().clone();
    let late = keep(&home.open(), TaskId::fresh(), "say!", 2).await;

    let text = refusal(restore(&home.path("copy.db"), &home.store(), false));
    assert!(text.contains("exists already") && text.contains("--force"), "{text}");
    assert!(home.open().head(Scope::Admin, late.id()).await.unwrap().is_some());

    restore(&home.path("copy.db"), &home.store(), true).unwrap();
    let store = home.open();
    assert_ne!(*store.epoch(), epoch);
    assert!(store.head(Scope::Admin, late.id()).await.unwrap().is_none());
    let record = store.record(Scope::Admin, kept.id()).await.unwrap().unwrap();
    assert_eq!(folded(&record), kept.fold());
    drop(store);
    // Once more from the same copy: another epoch again.
    restore(&home.path("copy.db"), &home.store(), true).unwrap();
    assert_eq!(home.files(), ["copy.db", "flotilla.db"]);
}

/// A hub that was killed leaves a write-ahead log behind; it must not flow into what takes the store's place.
#[tokio::test]
async fn the_rest_of_a_killed_store_goes_with_it() {
    let home = File::new();
    let kept = keep(&home.open(), TaskId::fresh(), "say! work chunk done", 1).await;
    backup(&home.store(), &home.path("copy.db")).unwrap();
    let log = home.path("flotilla.db-wal");
    let late = {
        let store = home.open();
        let late = keep(&store, TaskId::fresh(), "say! work chunk done", 2).await;
        std::fs::copy(&log, home.path("log")).unwrap();
        late
    };
    std::fs::rename(home.path("log"), &log).unwrap();
    restore(&home.path("copy.db"), &home.store(), true).unwrap();
    assert_eq!(home.files(), ["copy.db", "flotilla.db"]);
    let store = home.open();
    assert!(store.head(Scope::Admin, late.id()).await.unwrap().is_none());
    assert_eq!(store.record(Scope::Admin, kept.id()).await.unwrap().unwrap().changes, kept.log);
}

#[tokio::test]
async fn backups_go_into_new_files() {
    let home = File::new();
    drop(home.open());
    std::fs::write(home.path("mine.txt"), "precious").unwrap();
    let text = refusal(backup(&home.store(), &home.path("mine.txt")));
    assert!(text.contains("exists already"), "{text}");
    assert_eq!(std::fs::read_to_string(home.path("mine.txt")).unwrap(), "precious");
    let text = refusal(backup(&home.path("nowhere.db"), &home.path("copy.db")));
    assert!(text.contains("does not exist"), "{text}");
    // What an earlier, broken-off backup left behind does not stand in the way.
    std::fs::write(home.path("copy.partial"), "half of a copy").unwrap();
    backup(&home.store(), &home.path("copy.db")).unwrap();
    assert_eq!(home.files(), ["copy.db", "flotilla.db", "mine.txt"]);
}

/// Files that are no backup of ours, and a word of the refusal.
fn impostors(home: &File) -> Vec<(std::path::PathBuf, &'static str)> {
    let paths = ["missing.db", "text.db", "empty.db", "foreign.db", "newer.db", "torn.db"].map(|name| home.path(name));
    let [missing, text, empty, foreign, newer, torn] = paths;
    std::fs::write(&text, "not a database ".repeat(500)).unwrap();
    std::fs::write(&empty, "").unwrap();
    Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE notes (text TEXT)").unwrap();
    backup(&home.store(), &newer).unwrap();
    Connection::open(&newer).unwrap().pragma_update(None, "user_version", 1_000).unwrap();
    backup(&home.store(), &torn).unwrap();
    let bytes = std::fs::read(&torn).unwrap();
    std::fs::write(&torn, &bytes[..bytes.len() / 2]).unwrap();
    vec![
        (missing, "does not exist"),
        (text, "not a Flotilla store"),
        (empty, "not a Flotilla store"),
        (foreign, "not a Flotilla store"),
        (newer, "newer"),
        (torn, ""),
    ]
}

#[tokio::test]
async fn what_is_no_backup_is_refused_and_the_store_stays() {
    let home = File::new();
    let task = keep(&home.open(), TaskId::fresh(), "say! work chunk done", 1).await;
    let epoch = home.open().epoch().clone();
    let impostors = impostors(&home);
    let files = home.files();
    for (path, word) in &impostors {
        for target in [home.store(), home.path("fresh.db")] {
            let text = refusal(restore(path, &target, true));
            assert!(text.contains(word), "{}: {text}", path.display());
        }
        assert_eq!(home.files(), files, "{}", path.display());
    }
    let store = home.open();
    assert_eq!(*store.epoch(), epoch);
    assert_eq!(store.record(Scope::Admin, task.id()).await.unwrap().unwrap().changes, task.log);
}

#[tokio::test]
async fn what_is_no_store_is_not_backed_up() {
    let home = File::new();
    drop(home.open());
    let impostors = impostors(&home);
    let files = home.files();
    for (path, _) in &impostors {
        refusal(backup(path, &home.path("copy.db")));
        assert_eq!(home.files(), files, "{}", path.display());
    }
    assert!(!Path::exists(&home.path("copy.db")));
}
