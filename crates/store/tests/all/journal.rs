//! The journal in front of the tables: what it holds is not lost, whatever became of the tables.

use crate::author::{Author, folded, id_at, keep, outcomes, queue};
use crate::home::{File, Home};
use crate::key::key;
use crate::random::Random;
use crate::send::{dedupe, first};
use flotilla_core::caller::Scope;
use flotilla_core::ports::{Sent, Store};
use flotilla_store::sqlite::{Sqlite, Sync, backup, restore};
use rusqlite::Connection;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const BLOCK: u64 = 4096;

/// What a power cut would leave: the database file and the journal, without what was never flushed.
fn after_power_cut(home: &File) -> File {
    copy(home, &["flotilla.db", "flotilla.db-log1", "flotilla.db-log2"])
}

/// What a killed process leaves.
fn after_kill(home: &File) -> File {
    copy(home, &["flotilla.db", "flotilla.db-wal", "flotilla.db-log1", "flotilla.db-log2"])
}

fn copy(home: &File, names: &[&str]) -> File {
    let copy = File::new();
    for name in names {
        std::fs::copy(home.path(name), copy.path(name)).unwrap();
    }
    copy
}

/// Keeps the tables from being written as long as it lives.
fn locked_tables(home: &File) -> Connection {
    let connection = Connection::open(home.store()).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    connection
}

async fn holds(store: &Arc<dyn Store>, task: &Author) {
    let record = store.record(Scope::Admin, task.id()).await.unwrap().expect("the task is there");
    assert_eq!((&record.head, &record.changes), (&task.head, &task.log));
}

#[tokio::test]
async fn what_was_acknowledged_outlives_a_power_cut_and_a_kill() {
    let home = File::new();
    // Closed once, so that the database file holds the schema.
    drop(home.open());
    let store = home.open();
    let mut random = Random::new(1);
    let mut tasks = Vec::new();
    for round in 0..40 {
        tasks.push(keep(&store, id_at(round, &mut random), "say! work chunk", round).await);
        if round % 10 == 0 {
            // A read has the tables catch up in between.
            holds(&store, &tasks[0]).await;
        }
        let task = random.below(tasks.len());
        tasks[task].keep(&store, "chunk", round).await;
    }
    let used = dedupe(&mut random);
    let draft = first(&mut random, 1, used);
    let sent = Sent { task: draft.head.id, hash: used.hash };
    assert_eq!(outcomes(queue(&store, [draft])).await, ["kept"]);
    for crashed in [after_power_cut(&home), after_kill(&home)] {
        for _ in 0..2 {
            let again = crashed.open();
            for task in &tasks {
                holds(&again, task).await;
            }
            assert_eq!(again.sent(used.key).await.unwrap(), Some(sent));
            assert_eq!(outcomes(queue(&again, [first(&mut random, 2, used)])).await, ["duplicate"]);
        }
        assert_eq!(crashed.files(), ["flotilla.db"]);
    }
}

#[tokio::test]
async fn commits_do_not_wait_for_the_tables_and_reads_do() {
    let home = File::new();
    let store = home.open();
    let mut random = Random::new(2);
    let tables = locked_tables(&home);
    let task = keep(&store, id_at(1, &mut random), "say! work chunk done", 1).await;
    let copied = {
        let (from, to) = (home.store(), home.path("copy.db"));
        tokio::task::spawn_blocking(move || backup(&from, &to)).await.unwrap()
    };
    copied.unwrap();
    let mut reading = tokio::spawn(store.record(Scope::Admin, task.id()));
    let early = tokio::time::timeout(Duration::from_millis(300), &mut reading).await;
    assert!(early.is_err(), "answered before the tables had it: {early:?}");
    drop(tables);
    assert_eq!(folded(&reading.await.unwrap().unwrap().unwrap()), task.fold());

    // What was in the journal only is in the backup as well.
    let away = File::new();
    let mode = std::fs::metadata(home.path("copy.db")).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "a backup is for its owner only");
    restore(&home.path("copy.db"), &away.store(), false).unwrap();
    holds(&away.open(), &task).await;
}

#[tokio::test]
async fn a_batch_that_was_cut_off_is_as_if_it_had_never_been() {
    let home = File::new();
    let store = home.open();
    let mut random = Random::new(3);
    let _tables = locked_tables(&home);
    let mut tasks = Vec::new();
    for _ in 0..5 {
        tasks.push(keep(&store, id_at(1, &mut random), "say!", 1).await);
    }
    // Of five batches in blocks of their own behind the first block, the last is spoiled.
    let crashed = after_kill(&home);
    spoil(&crashed.path("flotilla.db-log1"), 5 * BLOCK + 100);
    let again = crashed.open();
    for task in &tasks[..4] {
        holds(&again, task).await;
    }
    assert_eq!(again.head(Scope::Admin, tasks[4].id()).await.unwrap(), None);
    // Nothing is in its way when it is made again.
    tasks[4] = keep(&again, tasks[4].id(), "say! work", 2).await;
    holds(&again, &tasks[4]).await;
}

#[tokio::test]
async fn damage_is_not_taken_for_the_end() {
    let home = File::new();
    let store = home.open();
    let mut random = Random::new(4);
    let _tables = locked_tables(&home);
    for _ in 0..5 {
        keep(&store, id_at(1, &mut random), "say!", 1).await;
    }
    let crashed = after_kill(&home);
    spoil(&crashed.path("flotilla.db-log1"), 3 * BLOCK + 100);
    let text = Sqlite::open(&crashed.store(), Sync::Full).err().expect("refused").to_string();
    assert!(text.contains("damaged behind batch 2"), "{text}");
}

#[tokio::test]
async fn a_store_older_than_its_journal_is_refused() {
    let home = File::new();
    let mut random = Random::new(5);
    drop(home.open());
    std::fs::copy(home.store(), home.path("old.db")).unwrap();
    let task = keep(&home.open(), id_at(1, &mut random), "say! work", 1).await;
    let store = home.open();
    keep(&store, id_at(2, &mut random), "say!", 2).await;
    let crashed = after_kill(&home);
    std::fs::copy(home.path("old.db"), crashed.store()).unwrap();
    std::fs::remove_file(crashed.path("flotilla.db-wal")).unwrap();
    let text = Sqlite::open(&crashed.store(), Sync::Full).err().expect("refused").to_string();
    assert!(text.contains("older than its journal") && text.contains("flotilla.db-log1"), "{text}");
    holds(&store, &task).await;
}

#[tokio::test]
async fn the_journal_of_another_store_is_refused_and_left_alone() {
    let home = File::new();
    let mut random = Random::new(6);
    let store = home.open();
    let _tables = locked_tables(&home);
    let task = keep(&store, id_at(1, &mut random), "say! work", 1).await;
    let other = File::new();
    let (theirs, here) = (home.path("flotilla.db-log1"), other.path("flotilla.db-log1"));
    std::fs::copy(&theirs, &here).unwrap();
    let text = Sqlite::open(&other.store(), Sync::Full).err().expect("refused").to_string();
    assert!(text.contains("journal of another store") && text.contains("move it away"), "{text}");
    assert_eq!(std::fs::read(&here).unwrap(), std::fs::read(&theirs).unwrap(), "nothing of it is lost");
    std::fs::remove_file(&here).unwrap();
    assert_eq!(other.open().head(Scope::Admin, task.id()).await.unwrap(), None);
}

/// What lies in a file from before does not count, whoever's it was.
#[tokio::test]
async fn a_store_that_was_begun_anew_does_not_take_up_the_old_one() {
    let home = File::new();
    let mut random = Random::new(10);
    let store = home.open();
    let tables = locked_tables(&home);
    let mut old = Vec::new();
    for _ in 0..20 {
        old.push(keep(&store, id_at(1, &mut random), "say!", 1).await);
    }
    let crashed = after_kill(&home);
    drop(tables);
    for name in ["flotilla.db", "flotilla.db-wal"] {
        std::fs::remove_file(crashed.path(name)).unwrap();
    }
    assert!(Sqlite::open(&crashed.store(), Sync::Full).is_err(), "what the journal holds may be all there is");
    // One that holds no commits is in nobody's way, and is written over.
    spoil(&crashed.path("flotilla.db-log1"), BLOCK + 10);
    let fresh = crashed.open();
    let kept = keep(&fresh, id_at(2, &mut random), "say!", 2).await;
    for again in [after_kill(&crashed), after_kill(&crashed)] {
        let store = again.open();
        holds(&store, &kept).await;
        for task in &old {
            assert_eq!(store.head(Scope::Admin, task.id()).await.unwrap(), None);
        }
    }
}

#[tokio::test]
async fn a_first_batch_that_was_cut_off_leaves_a_store_that_opens() {
    let home = File::new();
    let mut random = Random::new(11);
    let store = home.open();
    let mut tasks = Vec::new();
    for _ in 0..20 {
        tasks.push(keep(&store, id_at(1, &mut random), "say!", 1).await);
    }
    let once = after_kill(&home);
    let store = once.open();
    holds(&store, &tasks[0]).await;
    let twice = after_kill(&once);
    // As if the first batch after the start were there in part.
    spoil(&twice.path("flotilla.db-log1"), BLOCK + 50);
    let store = twice.open();
    for task in &tasks {
        holds(&store, task).await;
    }
}

#[tokio::test]
async fn a_damaged_first_block_is_refused_and_an_unused_one_is_not() {
    let home = File::new();
    let mut random = Random::new(12);
    let store = home.open();
    let _tables = locked_tables(&home);
    let task = keep(&store, id_at(1, &mut random), "say!", 1).await;
    let crashed = after_kill(&home);
    spoil(&crashed.path("flotilla.db-log1"), 3);
    let text = Sqlite::open(&crashed.store(), Sync::Full).err().expect("refused").to_string();
    assert!(text.contains("first block") && text.contains("flotilla.db-log1"), "{text}");
    spoil(&crashed.path("flotilla.db-log1"), 3);
    holds(&crashed.open(), &task).await;
}

/// Without a flush each, holes are what a power cut leaves: what is before the first is kept.
#[tokio::test]
async fn a_hole_in_a_loose_journal_is_its_end() {
    let home = File::new();
    let mut random = Random::new(13);
    let store: Arc<dyn Store> = Arc::new(Sqlite::open(&home.store(), Sync::Normal).unwrap());
    let _tables = locked_tables(&home);
    let mut tasks = Vec::new();
    for _ in 0..5 {
        tasks.push(keep(&store, id_at(1, &mut random), "say!", 1).await);
    }
    let crashed = after_kill(&home);
    spoil(&crashed.path("flotilla.db-log1"), 3 * BLOCK + 100);
    let again = crashed.open();
    for task in &tasks[..2] {
        holds(&again, task).await;
    }
    for task in &tasks[2..] {
        assert_eq!(again.head(Scope::Admin, task.id()).await.unwrap(), None);
    }
}

#[tokio::test]
async fn a_link_to_a_store_is_the_store() {
    let (home, away) = (File::new(), File::new());
    let task = {
        let store = home.open();
        std::os::unix::fs::symlink(home.store(), away.store()).unwrap();
        let task = keep(&store, id_at(1, &mut Random::new(14)), "say!", 1).await;
        let text = Sqlite::open(&away.store(), Sync::Full).err().expect("refused").to_string();
        assert!(text.contains("in use by another hub"), "{text}");
        task
    };
    holds(&away.open(), &task).await;
    assert_eq!((home.files(), away.files()), (vec!["flotilla.db".to_owned()], vec!["flotilla.db".to_owned()]));
}

#[tokio::test]
async fn the_files_take_turns_and_do_not_grow_for_ever() {
    let home = File::new();
    let store = home.open();
    let mut task = keep(&store, id_at(1, &mut Random::new(7)), "say!", 1).await;
    for _ in 0..40 {
        // 4 MB at a time, and the tables catch up in between.
        task.keep(&store, &"large ".repeat(10), 1).await;
        assert!(store.head(Scope::Admin, task.id()).await.unwrap().is_some());
    }
    for name in ["flotilla.db-log1", "flotilla.db-log2"] {
        let size = std::fs::metadata(home.path(name)).unwrap().len();
        assert!((16 << 20..72 << 20).contains(&size), "{name} has {size} bytes");
    }
    let again = after_kill(&home);
    holds(&again.open(), &task).await;
}

#[tokio::test]
async fn a_store_is_used_by_one_hub_and_by_tools_beside_it() {
    let home = File::new();
    let store = home.open();
    let mut random = Random::new(8);
    let task = keep(&store, id_at(1, &mut random), "say!", 1).await;
    let text = Sqlite::open(&home.store(), Sync::Full).err().expect("refused").to_string();
    assert!(text.contains("in use by another hub"), "{text}");
    backup(&home.store(), &home.path("copy.db")).unwrap();
    let text = restore(&home.path("copy.db"), &home.store(), true).unwrap_err().to_string();
    assert!(text.contains("in use by a hub"), "{text}");

    let tool: Arc<dyn Store> = Arc::new(Sqlite::open_beside(&home.store()).unwrap());
    let refused = queue(&tool, Author::new(id_at(2, &mut random)).write("say!", 2));
    assert_eq!(outcomes(refused).await, ["failed"]);
    let key = key("beside", &mut random);
    assert!(tool.add_key(key.clone()).await.unwrap());
    assert!(store.key(key.hash).await.unwrap().is_some());
    drop(tool);
    holds(&store, &task).await;
}

/// A tool at work after a crash leaves nothing behind in the journal.
#[tokio::test]
async fn tools_put_what_a_crash_left_into_the_tables() {
    let home = File::new();
    let store = home.open();
    let _tables = locked_tables(&home);
    let task = keep(&store, id_at(1, &mut Random::new(9)), "say! work", 1).await;
    let crashed = after_kill(&home);
    let tool: Arc<dyn Store> = Arc::new(Sqlite::open_beside(&crashed.store()).unwrap());
    holds(&tool, &task).await;
    drop(tool);
    assert_eq!(crashed.files(), ["flotilla.db"]);
    holds(&crashed.open(), &task).await;
}

fn spoil(path: &Path, offset: u64) {
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).unwrap();
    file.write_all_at(&[!byte[0]], offset).unwrap();
}
