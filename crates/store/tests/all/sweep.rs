//! Sweeping: long logs are folded, old things go, and nothing else changes.

use crate::author::{AGENT, Author, CALLER, folded, id_at, keep, queue};
use crate::home::Home;
use crate::random::Random;
use flotilla_core::caller::Scope;
use flotilla_core::ids::TaskId;
use flotilla_core::ports::{ListFilter, Retention, Store, Swept, Tail};
use flotilla_protocol::time::Millis;
use std::sync::Arc;

/// Sweeps until there is nothing left to do, as the loop does.
pub async fn sweep_all(store: &Arc<dyn Store>, retention: Retention) -> Swept {
    let mut total = Swept::default();
    for _ in 0..1_000 {
        let swept = store.sweep(retention).await.unwrap();
        if swept == Swept::default() {
            return total;
        }
        total.tasks += swept.tasks;
        total.logs += swept.logs;
        total.sends += swept.sends;
    }
    panic!("the sweep does not come to an end");
}

/// Which of the tasks are still there, by their place in the list.
async fn left(store: &Arc<dyn Store>, tasks: &[Author]) -> Vec<usize> {
    let mut left = Vec::new();
    for (index, task) in tasks.iter().enumerate() {
        let head = store.head(Scope::Admin, task.id()).await.unwrap();
        let record = store.record(Scope::Admin, task.id()).await.unwrap();
        assert_eq!(head.is_some(), record.is_some());
        match record {
            Some(record) => {
                assert_eq!(folded(&record), task.fold());
                left.push(index);
            }
            None => {
                let tail = store.after(Scope::Admin, task.id(), 0, 1).await.unwrap();
                assert!(matches!(tail, Tail::Pruned));
            }
        }
    }
    left
}

/// A task for each row: its words, when it was begun and when its last word was said.
async fn tasks(store: &Arc<dyn Store>, rows: &[(&str, i64, i64)]) -> Vec<Author> {
    let mut random = Random::new(9);
    let mut tasks = Vec::new();
    for (words, begun, last) in rows {
        let mut task = Author::new(id_at(*begun, &mut random));
        let (early, late) = words.rsplit_once(' ').unwrap_or((words, ""));
        task.keep(store, early, *begun).await;
        task.keep(store, late, *last).await;
        tasks.push(task);
    }
    tasks
}

async fn total(store: &Arc<dyn Store>) -> u64 {
    let filter = ListFilter { limit: 1, ..ListFilter::default() };
    store.list(CALLER, AGENT, filter).await.unwrap().total
}

pub async fn long_logs_come_to_the_same_after_a_sweep(home: &impl Home) {
    let store = home.open();
    let mut random = Random::new(1);
    let long = format!("say! work {}", "chunk note ".repeat(30));
    let mut tasks = Vec::new();
    for words in [&format!("{long}whole done"), &format!("{long}fail"), &long, "say! work chunk done"] {
        tasks.push(keep(&store, id_at(1, &mut random), words, 1).await);
    }
    sweep_all(&store, Retention::default()).await;
    assert_eq!(left(&store, &tasks).await, [0, 1, 2, 3]);
    tasks[2].keep(&store, "chunk note ask say chunk done", 2).await;
    sweep_all(&store, Retention::default()).await;
    assert_eq!(left(&store, &tasks).await, [0, 1, 2, 3]);
    for task in &tasks {
        // Who follows still finds each event.
        match store.after(Scope::Admin, task.id(), 0, 1_000).await.unwrap() {
            Tail::Changes(changes) => assert_eq!(changes, task.log),
            Tail::Pruned => panic!("nothing was pruned"),
        }
    }
    let filter = ListFilter { limit: 100, with_artifacts: true, ..ListFilter::default() };
    for record in store.list(CALLER, AGENT, filter).await.unwrap().records {
        let task = tasks.iter().find(|task| task.id() == record.head.id).unwrap();
        assert_eq!(folded(&record), task.fold());
    }
}

pub async fn ended_tasks_go_by_age(home: &impl Home) {
    let store = home.open();
    let rows = [
        ("say! work done", 10, 20),
        ("say! work", 10, 20),
        ("say! ask", 10, 20),
        ("say! fail", 10, 99),
        ("say! cancel", 10, 100),
        ("say! reject", 50, 60),
        ("say answer", 60, 60),
        ("say answer", 100, 100),
        ("say note", 10, 10),
        ("say! done", 100, 110),
    ];
    let tasks = tasks(&store, &rows).await;
    let retention = Retention { tasks_before: Some(Millis(100)), ..Retention::default() };
    assert_eq!(sweep_all(&store, retention).await, Swept { tasks: 4, ..Swept::default() });
    assert_eq!(left(&store, &tasks).await, [1, 2, 4, 7, 8, 9]);
    assert_eq!(total(&store).await, 4);
    assert_eq!(store.open_runs().await.unwrap().len(), 2);
}

pub async fn ended_tasks_go_by_number(home: &impl Home) {
    let store = home.open();
    let mut rows = vec![("say! work", 1, 1), ("say answer", 2, 2), ("say! ask", 3, 3)];
    rows.extend((10..460).map(|at| ("say! done", at, at)));
    let tasks = tasks(&store, &rows).await;
    let retention = Retention { tasks_max: Some(5), ..Retention::default() };
    assert_eq!(sweep_all(&store, retention).await, Swept { tasks: 446, ..Swept::default() });
    assert_eq!(left(&store, &tasks).await, [0, 2, 448, 449, 450, 451, 452]);
    assert_eq!(total(&store).await, 7);
    let retention = Retention { tasks_max: Some(0), ..Retention::default() };
    assert_eq!(sweep_all(&store, retention).await.tasks, 5);
    assert_eq!(left(&store, &tasks).await, [0, 2]);
}

/// What age removes counts towards the number: four ended tasks, one too old, at most two to keep.
pub async fn age_and_number_together_take_no_more_than_each(home: &impl Home) {
    let store = home.open();
    let rows = [("say! done", 1, 90), ("say! done", 2, 91), ("say! done", 3, 4), ("say! done", 5, 92)];
    let tasks = tasks(&store, &rows).await;
    let retention = Retention { tasks_before: Some(Millis(50)), tasks_max: Some(2), ..Retention::default() };
    assert_eq!(sweep_all(&store, retention).await.tasks, 2);
    let left = left(&store, &tasks).await;
    assert_eq!((left.len(), left.contains(&2)), (2, false), "{left:?}");
}

/// However many old tasks wait for their callers, the ended ones behind them go.
pub async fn open_tasks_do_not_shelter_ended_ones(home: &impl Home) {
    let store = home.open();
    let mut random = Random::new(2);
    let open: Vec<Author> = (0..2_500).map(|_| Author::new(id_at(1, &mut random))).collect();
    for told in queue(&store, open.iter().map(|task| task.draft("say!", 1).unwrap())) {
        told.await.unwrap().unwrap();
    }
    let ended = keep(&store, id_at(2, &mut random), "say! done", 2).await;
    let retention = Retention { tasks_before: Some(Millis(100)), ..Retention::default() };
    assert_eq!(sweep_all(&store, retention).await, Swept { tasks: 1, ..Swept::default() });
    assert_eq!(store.head(Scope::Admin, ended.id()).await.unwrap(), None);
    assert_eq!(total(&store).await, 2_500);
}

pub async fn old_events_go_but_their_result_stays(home: &impl Home) {
    let store = home.open();
    let long = format!("say! work {}done", "chunk note ".repeat(30));
    let rows = [
        ("say! work chunk whole done", 1, 20),
        (long.as_str(), 1, 20),
        ("say note answer", 1, 20),
        ("say! work chunk ask", 1, 20),
        ("say! work chunk done", 1, 200),
    ];
    let tasks = tasks(&store, &rows).await;
    let retention = Retention { events_before: Some(Millis(100)), ..Retention::default() };
    sweep_all(&store, retention).await;
    assert_eq!(left(&store, &tasks).await, [0, 1, 2, 3, 4]);
    for (index, task) in tasks.iter().enumerate() {
        let tail = store.after(Scope::Admin, task.id(), 0, 1_000).await.unwrap();
        assert_eq!(matches!(tail, Tail::Pruned), index < 3, "{index}");
        assert_eq!(store.head(Scope::Admin, task.id()).await.unwrap().as_ref(), Some(&task.head));
    }
    let retention = Retention { tasks_before: Some(Millis(100)), ..Retention::default() };
    assert_eq!(sweep_all(&store, retention).await.tasks, 3);
    assert_eq!(left(&store, &tasks).await, [3, 4]);
}

pub async fn a_sweep_of_nothing_changes_nothing(home: &impl Home) {
    let store = home.open();
    let everything = Retention {
        tasks_before: Some(Millis(i64::MAX)),
        tasks_max: Some(0),
        events_before: Some(Millis(i64::MAX)),
        dedupe_before: Some(Millis(i64::MAX)),
        dedupe_max: Some(0),
    };
    assert_eq!(sweep_all(&store, everything).await, Swept::default());
    let task = keep(&store, TaskId::fresh(), "say! work chunk done", 1).await;
    let generous = Retention {
        tasks_before: Some(Millis(-1)),
        tasks_max: Some(u64::MAX),
        events_before: Some(Millis(i64::MIN)),
        dedupe_before: Some(Millis(0)),
        dedupe_max: Some(u64::MAX),
    };
    assert_eq!(sweep_all(&store, generous).await, Swept::default());
    assert_eq!(left(&store, &[task]).await, [0]);
}
