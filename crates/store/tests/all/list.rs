//! Lists: newest status first, page after page, agreeing with a model under every filter.

use crate::author::{AGENT, Author, CALLER, folded, id_at, keep, queue};
use crate::home::Home;
use crate::random::Random;
use flotilla_core::ids::TaskId;
use flotilla_core::ports::{ListFilter, ListPage, Store};
use flotilla_core::task::Kind;
use flotilla_protocol::a2a::model::TaskState;
use flotilla_protocol::time::Millis;
use std::cmp::Reverse;
use std::sync::Arc;

const CONTEXTS: [&str; 4] = ["a", "b", "c", "d'; --"];

/// Some hundred tasks in all states, many with the same time.
async fn some_hundred(store: &Arc<dyn Store>, random: &mut Random) -> Vec<Author> {
    let endings =
        ["", "work", "ask", "auth", "done", "fail", "reject", "answer", "work chunk done", "work whole chunk"];
    let mut tasks = Vec::new();
    let mut waiting = Vec::new();
    for _ in 0..300 {
        let at = 1_000 + random.below(12) as i64;
        let mut task = Author::of(id_at(at, random), CALLER, AGENT, random.pick(&CONTEXTS));
        let first = if random.once_in(2) { "say" } else { "say!" };
        waiting.extend(queue(store, task.write(first, at)));
        let later = at + random.below(3) as i64;
        waiting.extend(queue(store, task.write(random.pick(&endings), later)));
        tasks.push(task);
    }
    for told in waiting {
        told.await.unwrap().unwrap();
    }
    tasks
}

fn expected<'a>(tasks: &'a [Author], filter: &ListFilter) -> Vec<&'a Author> {
    let fits = |task: &&Author| {
        let head = &task.head;
        head.kind == Kind::Task
            && filter.context.as_ref().is_none_or(|context| **context == *head.context)
            && filter.state.is_none_or(|state| state == head.state)
            && filter.status_since.is_none_or(|since| head.status_at >= since)
    };
    let mut fitting: Vec<&Author> = tasks.iter().filter(fits).collect();
    fitting.sort_by_key(|task| Reverse((task.head.status_at, task.id())));
    fitting
}

fn some_filter(random: &mut Random) -> ListFilter {
    ListFilter {
        context: random.once_in(2).then(|| random.pick(&CONTEXTS).to_owned()),
        state: random.once_in(2).then(|| random.pick(&TaskState::ALL[1..])),
        status_since: random.once_in(2).then(|| Millis(998 + random.below(18) as i64)),
        after: None,
        limit: 1 + random.below(50),
        bytes: usize::MAX,
        with_artifacts: random.once_in(2),
        history: None,
    }
}

fn place(page: &ListPage) -> Option<(Millis, TaskId)> {
    page.records.last().map(|record| (record.head.status_at, record.head.id))
}

pub async fn pages_agree_with_a_model(home: &impl Home) {
    let store = home.open();
    let mut random = Random::new(1);
    let tasks = some_hundred(&store, &mut random).await;
    for _ in 0..60 {
        let mut filter = some_filter(&mut random);
        let expected = expected(&tasks, &filter);
        let mut found = Vec::new();
        loop {
            let page = store.list(CALLER, AGENT, filter.clone()).await.unwrap();
            assert_eq!(page.total, expected.len() as u64, "{filter:?}");
            assert!(page.records.len() <= filter.limit, "{filter:?}");
            filter.after = place(&page);
            let more = page.more;
            found.extend(page.records);
            assert_eq!(more, found.len() < expected.len(), "{filter:?}");
            if !more {
                break;
            }
        }
        let ids: Vec<TaskId> = found.iter().map(|record| record.head.id).collect();
        assert_eq!(ids, expected.iter().map(|task| task.id()).collect::<Vec<_>>(), "{filter:?}");
        for (record, task) in found.iter().zip(expected) {
            assert_eq!(record.head, task.head);
            let mut fold = task.fold();
            if !filter.with_artifacts {
                fold.artifacts.clear();
            }
            let mut found = folded(record);
            if !filter.with_artifacts {
                found.artifacts.clear();
            }
            assert_eq!(found, fold, "{filter:?}");
        }
    }
}

pub async fn totals_do_not_depend_on_the_page(home: &impl Home) {
    let store = home.open();
    let mut random = Random::new(2);
    let tasks = some_hundred(&store, &mut random).await;
    let everything = ListFilter { limit: 1_000, ..ListFilter::default() };
    let all = store.list(CALLER, AGENT, everything.clone()).await.unwrap();
    assert_eq!((all.total, all.more), (expected(&tasks, &everything).len() as u64, false));
    let after_the_last = ListFilter { after: place(&all), ..everything.clone() };
    let page = store.list(CALLER, AGENT, after_the_last).await.unwrap();
    assert_eq!((page.records.len(), page.total, page.more), (0, all.total, false));
    let exactly_all = ListFilter { limit: all.records.len(), ..everything };
    let page = store.list(CALLER, AGENT, exactly_all).await.unwrap();
    assert_eq!((page.records.len(), page.more), (all.records.len(), false));
}

pub async fn exchanges_are_not_listed(home: &impl Home) {
    let store = home.open();
    let mut random = Random::new(3);
    let mut undecided = keep(&store, id_at(1, &mut random), "say note", 1).await;
    keep(&store, id_at(1, &mut random), "say answer", 1).await;
    let everything = || ListFilter { limit: 10, ..ListFilter::default() };
    let page = store.list(CALLER, AGENT, everything()).await.unwrap();
    assert_eq!((page.records.len(), page.total), (0, 0));
    undecided.keep(&store, "open", 2).await;
    let page = store.list(CALLER, AGENT, everything()).await.unwrap();
    assert_eq!((page.records.len(), page.total), (1, 1));
}

pub async fn artifacts_are_left_out_when_not_wanted(home: &impl Home) {
    let store = home.open();
    let words = format!("say! work {} ask say work note done", "chunk ".repeat(20));
    let task = keep(&store, TaskId::fresh(), &words, 1).await;
    let filter = |with_artifacts| ListFilter { limit: 1, with_artifacts, ..ListFilter::default() };
    let with = store.list(CALLER, AGENT, filter(true)).await.unwrap().records.remove(0);
    assert_eq!(with.changes, task.log);
    let without = store.list(CALLER, AGENT, filter(false)).await.unwrap().records.remove(0);
    assert!(without.changes.len() < 10, "{} changes read", without.changes.len());
    let (with, without) = (folded(&with), folded(&without));
    assert_eq!((&with.status, &with.history), (&without.status, &without.history));
    assert_eq!(with, task.fold());
}
