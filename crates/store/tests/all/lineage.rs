//! Where tasks come from and when they end, and the name of the hub they are on.

use crate::author::{Author, PARENT, id_at, keep, queue};
use crate::home::{File, Home};
use crate::random::Random;
use flotilla_core::caller::Scope;
use flotilla_core::ids::TaskId;
use flotilla_core::ports::{Retention, Store};
use flotilla_protocol::time::Millis;
use rusqlite::Connection;
use std::sync::Arc;

async fn is_whole(store: &Arc<dyn Store>, task: &Author) {
    let head = store.head(Scope::Admin, task.id()).await.unwrap().unwrap();
    let origin = head.origin.as_ref().expect("an origin");
    assert_eq!((origin.hops, origin.parent().map(|parent| parent.task.as_str())), (3, Some(PARENT)));
    assert_eq!(head, task.head);
}

pub async fn a_delegated_task_is_read_back_whole(home: &impl Home) {
    let store = home.open();
    for words in ["delegated", "delegated work chunk", "delegated work ask sooner", "delegated work done"] {
        let task = keep(&store, TaskId::fresh(), words, 1).await;
        is_whole(&store, &task).await;
    }
    let plain = keep(&store, TaskId::fresh(), "say work", 1).await;
    let head = store.head(Scope::Admin, plain.id()).await.unwrap().unwrap();
    assert_eq!((head.origin, head.deadline), (None, None));
}

pub async fn deadlines_are_of_tasks_that_have_not_ended(home: &impl Home) {
    let store = home.open();
    let mut random = Random::new(5);
    let mut expected = Vec::new();
    for (words, deadline) in [
        ("delegated", Some(9_000)),
        ("delegated work", Some(9_000)),
        ("delegated work ask sooner", Some(1_000)),
        ("delegated work ask", Some(9_000)),
        ("delegated auth", Some(9_000)),
        ("delegated done", None),
        ("delegated answer", None),
        ("delegated! cancel", None),
        ("say work", None),
    ] {
        let words = words.replace("delegated!", "delegated open");
        let task = keep(&store, id_at(1, &mut random), &words, 1).await;
        expected.extend(deadline.map(|at| (task.id(), Millis(at))));
    }
    let mut found = store.deadlines().await.unwrap();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}

pub async fn a_delegated_task_is_there_again(home: &impl Home) {
    let (one, mut gone_on) =
        (keep(&home.open(), TaskId::fresh(), "delegated work", 1).await, Author::new(TaskId::fresh()));
    gone_on.keep(&home.open(), "delegated work", 1).await;
    gone_on.keep(&home.open(), "ask sooner work", 2).await;
    let store = home.open();
    is_whole(&store, &one).await;
    is_whole(&store, &gone_on).await;
    let mut found = store.deadlines().await.unwrap();
    found.sort_by_key(|(_, at)| *at);
    assert_eq!(found, [(gone_on.id(), Millis(1_000)), (one.id(), Millis(9_000))]);
}

pub async fn the_hub_stays_the_same(home: &impl Home) {
    let name = home.open().hub_id().to_owned();
    assert!(name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit()), "{name}");
    for _ in 0..3 {
        assert_eq!(home.open().hub_id(), name);
    }
}

#[tokio::test]
async fn what_was_committed_at_once_is_one_row_that_a_person_can_read() {
    let home = File::new();
    let mut task = Author::new(TaskId::fresh());
    let store = home.open();
    for told in queue(&store, task.write("delegated work chunk done", 1)) {
        told.await.unwrap().unwrap();
    }
    is_whole(&store, &task).await;
    store.sweep(Retention { events_before: Some(Millis(i64::MAX)), ..Retention::default() }).await.unwrap();
    is_whole(&store, &task).await;
    let connection = Connection::open(home.store()).unwrap();
    let row = "SELECT hex(parent_task_id), provenance, ancestry ->> '$.hops', deadline FROM tasks";
    let row = connection.query_row(row, [], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, i64>(2)?, row.get::<_, i64>(3)?))
    });
    let parent = PARENT.replace('-', "").to_uppercase();
    assert_eq!(row.unwrap(), (parent, "a2a-remote".to_owned(), 3, 9_000));
}
