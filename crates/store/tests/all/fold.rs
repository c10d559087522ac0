//! Folding: a long log that has ended is read at once, however long it was.

use crate::author::{folded, id_at, keep};
use crate::home::Home;
use crate::random::Random;
use crate::sweep::sweep_all;
use flotilla_core::caller::Scope;
use flotilla_core::ports::{Retention, Swept};

pub async fn long_logs_are_folded_when_they_have_ended(home: &impl Home) {
    let store = home.open();
    let mut random = Random::new(1);
    let long = format!("say! work {}", "chunk note ".repeat(30));
    let mut ended = Vec::new();
    for _ in 0..25 {
        ended.push(keep(&store, id_at(1, &mut random), &format!("{long}whole done"), 1).await);
    }
    let open = keep(&store, id_at(1, &mut random), &long, 1).await;
    let short = keep(&store, id_at(1, &mut random), "say! work chunk done", 1).await;
    assert_eq!(sweep_all(&store, Retention::default()).await, Swept { logs: 25, ..Swept::default() });
    for task in &ended {
        let record = store.record(Scope::Admin, task.id()).await.unwrap().unwrap();
        assert_eq!((&record.head, folded(&record)), (&task.head, task.fold()));
        let fold = record.fold.expect("a long log that has ended is folded");
        assert_eq!((fold.seq, fold.peer_seq, record.changes.len()), (task.head.seq, task.head.peer_seq, 0));
    }
    for task in [open, short] {
        let record = store.record(Scope::Admin, task.id()).await.unwrap().unwrap();
        assert_eq!(record.changes, task.log);
    }
}
