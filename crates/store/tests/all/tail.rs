//! Reading on: the changes after a cursor, for owners by `seq` and for peers by `peer_seq`.

use crate::author::{Author, keep};
use crate::home::Home;
use crate::sweep::sweep_all;
use flotilla_core::caller::Scope;
use flotilla_core::ids::TaskId;
use flotilla_core::ports::{Retention, Tail};
use flotilla_protocol::event::Change;
use flotilla_protocol::time::Millis;
use std::sync::Arc;

const WORDS: &str = "say note note work note chunk chunk note note note whole ask say note work chunk note done";

fn changes(tail: Tail) -> Vec<Arc<Change>> {
    match tail {
        Tail::Changes(changes) => changes,
        Tail::Pruned => panic!("nothing was pruned"),
    }
}

fn expected(task: &Author, limit: usize, wanted: impl Fn(&Change) -> bool) -> Vec<Arc<Change>> {
    task.log.iter().filter(|change| wanted(change)).take(limit).cloned().collect()
}

pub async fn owners_read_on_after_any_event(home: &impl Home) {
    let store = home.open();
    let task = keep(&store, TaskId::fresh(), WORDS, 1).await;
    for seq in 0..task.head.seq + 2 {
        for limit in [1, 2, 5, 1_000] {
            let found = changes(store.after(Scope::Admin, task.id(), seq, limit).await.unwrap());
            assert_eq!(found, expected(&task, limit, |change| change.last_seq() > seq), "after {seq}, {limit}");
        }
    }
}

/// A change that shows a peer nothing new is not handed out: it would only use up the limit.
pub async fn peers_read_on_after_any_visible_event(home: &impl Home) {
    let store = home.open();
    let task = keep(&store, TaskId::fresh(), WORDS, 1).await;
    for peer_seq in 0..task.head.peer_seq + 2 {
        for limit in [1, 2, 5, 1_000] {
            let found = changes(store.after_peer(Scope::Admin, task.id(), peer_seq, limit).await.unwrap());
            let shows = |change: &Change| change.for_peers().any(|(number, _)| number > peer_seq);
            assert_eq!(found, expected(&task, limit, shows), "after {peer_seq}, {limit}");
        }
    }
}

const LARGE: &str = "say large large note large large large large large done";

pub async fn large_changes_are_read_on_to_the_end(home: &impl Home) {
    let store = home.open();
    let task = keep(&store, TaskId::fresh(), LARGE, 1).await;
    let (mut found, mut cursor) = (Vec::new(), 0);
    while cursor < task.head.peer_seq {
        let more = changes(store.after_peer(Scope::Admin, task.id(), cursor, 1_000).await.unwrap());
        cursor = more.last().expect("one at least").last_peer_seq();
        found.extend(more);
    }
    assert_eq!(found, expected(&task, 1_000, |change| change.peer_count() > 0));
}

pub async fn large_changes_come_a_few_at_a_time(home: &impl Home) {
    let store = home.open();
    let task = keep(&store, TaskId::fresh(), LARGE, 1).await;
    let first = changes(store.after_peer(Scope::Admin, task.id(), 0, 1_000).await.unwrap());
    assert!((1..5).contains(&first.len()), "{} of eight at once", first.len());
}

pub async fn pruned_events_are_said_to_be(home: &impl Home) {
    let store = home.open();
    let task = keep(&store, TaskId::from_bytes([0; 16]), WORDS, 1).await;
    sweep_all(&store, Retention { events_before: Some(Millis(10)), ..Retention::default() }).await;
    let (id, head) = (task.id(), &task.head);
    for seq in 0..head.seq {
        let tail = store.after(Scope::Admin, id, seq, 10).await.unwrap();
        assert!(matches!(tail, Tail::Pruned), "after {seq}: {tail:?}");
    }
    for peer_seq in 0..head.peer_seq {
        let tail = store.after_peer(Scope::Admin, id, peer_seq, 10).await.unwrap();
        assert!(matches!(tail, Tail::Pruned), "after {peer_seq}: {tail:?}");
    }
    assert_eq!(changes(store.after(Scope::Admin, id, head.seq, 10).await.unwrap()), []);
    assert_eq!(changes(store.after_peer(Scope::Admin, id, head.peer_seq, 10).await.unwrap()), []);
}
