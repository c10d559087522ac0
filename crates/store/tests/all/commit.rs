//! Commits: in order, against the version the decision saw, whole or not at all.

use crate::author::{Author, folded, id_at, keep, outcomes, queue};
use crate::home::Home;
use crate::random::Random;
use flotilla_core::caller::Scope;
use flotilla_core::ids::TaskId;
use std::sync::{Arc, Mutex};
use tokio::sync::oneshot;

pub async fn commits_are_made_in_order(home: &impl Home) {
    let store = home.open();
    let mut random = Random::new(1);
    let mut authors: Vec<Author> = (0..20).map(|_| Author::new(id_at(1, &mut random))).collect();
    let mut drafts = Vec::new();
    for word in ["say!", "work", "chunk", "chunk", "note", "done"] {
        for author in &mut authors {
            drafts.extend(author.write(word, 1));
        }
    }
    // Whoever is told later finds all told before it: the heads are read while commits are under way.
    let versions: Vec<(TaskId, u64)> = drafts.iter().map(|draft| (draft.head.id, draft.head.version)).collect();
    for (told, (id, version)) in queue(&store, drafts).into_iter().zip(versions) {
        told.await.unwrap().unwrap();
        let head = store.head(Scope::Admin, id).await.unwrap().unwrap();
        assert!(head.version >= version, "version {version} was acknowledged, {} is there", head.version);
    }
    for author in &authors {
        let record = store.record(Scope::Admin, author.id()).await.unwrap().unwrap();
        assert_eq!((&record.head, &record.changes), (&author.head, &author.log));
    }
}

/// Those of one task are told in the order they were handed over.
pub async fn commits_are_acknowledged_in_order(home: &impl Home) {
    let store = home.open();
    let mut task = Author::new(TaskId::fresh());
    let drafts = task.write(&format!("say! work {}done", "chunk ".repeat(600)), 1);
    let order = Arc::new(Mutex::new(Vec::new()));
    let (tell, told) = oneshot::channel();
    let mut last = Some(tell);
    let count = drafts.len() as u64;
    for draft in drafts {
        let (order, version) = (Arc::clone(&order), draft.head.version);
        let last = if version == count { last.take() } else { None };
        let commit = draft.into_commit(Box::new(move |result| {
            result.unwrap();
            order.lock().unwrap().push(version);
            if let Some(last) = last {
                last.send(()).unwrap();
            }
        }));
        if store.commit(commit) {
            store.attend();
        }
    }
    told.await.unwrap();
    assert_eq!(*order.lock().unwrap(), (1..=count).collect::<Vec<_>>());
}

pub async fn a_stale_commit_is_skipped_alone(home: &impl Home) {
    let store = home.open();
    let mut random = Random::new(2);
    for round in 0..20 {
        let task = keep(&store, id_at(round, &mut random), "say! work", round).await;
        let first = task.draft("done", round).unwrap();
        let second = task.draft("fail", round).unwrap();
        let third = Author::new(id_at(round, &mut random)).draft("say", round).unwrap();
        let ballast = Author::new(id_at(round, &mut random)).draft("say", round).unwrap();
        let other = third.head.clone();
        // The first waits for its maker, so that the three behind it are taken together with it.
        let told = queue(&store, [ballast, first.clone(), second, third]);
        assert_eq!(outcomes(told).await, ["kept", "kept", "stale", "kept"]);
        assert_eq!(store.head(Scope::Admin, task.id()).await.unwrap(), Some(first.head));
        assert_eq!(store.head(Scope::Admin, other.id).await.unwrap(), Some(other));
        let record = store.record(Scope::Admin, task.id()).await.unwrap().unwrap();
        assert_eq!(record.changes.last(), Some(&first.change));
        assert_eq!(record.changes.len(), 3);
    }
}

pub async fn what_was_written_is_read_back(home: &impl Home) {
    let store = home.open();
    let words = "say note work chunk chunk whole ask say work note chunk auth say! lost work done";
    let task = keep(&store, TaskId::fresh(), words, 1_700_000_000_000).await;
    let record = store.record(Scope::Admin, task.id()).await.unwrap().unwrap();
    assert_eq!(record.head, task.head);
    assert_eq!(record.changes, task.log);
    assert_eq!(folded(&record), task.fold());
    assert_eq!(store.head(Scope::Admin, TaskId::fresh()).await.unwrap(), None);
}

pub async fn a_new_task_does_not_replace_one(home: &impl Home) {
    let store = home.open();
    let task = keep(&store, TaskId::fresh(), "say! work", 1).await;
    let again = Author::new(task.id()).draft("say", 2).unwrap();
    let lost = keep(&store, TaskId::fresh(), "say!", 1).await;
    let mut missing = Author::new(TaskId::fresh());
    missing.write("say! work", 1);
    let after_nothing = missing.draft("done", 1).unwrap();
    assert_eq!(outcomes(queue(&store, [again, after_nothing])).await, ["stale", "stale"]);
    assert_eq!(store.record(Scope::Admin, task.id()).await.unwrap().unwrap().changes, task.log);
    assert_eq!(store.head(Scope::Admin, missing.id()).await.unwrap(), None);
    assert_eq!(store.head(Scope::Admin, lost.id()).await.unwrap(), Some(lost.head));
}

pub async fn open_runs_are_those_under_way(home: &impl Home) {
    let store = home.open();
    let mut random = Random::new(4);
    let mut expected = Vec::new();
    let cases = [
        ("say", true),
        ("say!", true),
        ("say note", true),
        ("say work", true),
        ("say ask", false),
        ("say auth say", true),
        ("say lost", true),
        ("say work lost", false),
        ("say done", false),
        ("say answer", false),
        ("say! cancel", false),
    ];
    for (words, open) in cases {
        let task = keep(&store, id_at(1, &mut random), words, 1).await;
        expected.extend(open.then(|| task.id()));
    }
    let mut found = store.open_runs().await.unwrap();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}

pub async fn tasks_that_wait_for_their_caller_are_found(home: &impl Home) {
    let store = home.open();
    let mut random = Random::new(5);
    let mut expected = Vec::new();
    for (words, waits) in [
        ("say", false),
        ("say work", false),
        ("say ask", true),
        ("say auth", true),
        ("say ask say", false),
        ("say ask say ask", true),
        ("say ask say work", false),
        ("say ask cancel", false),
        ("say done", false),
        ("say answer", false),
    ] {
        let task = keep(&store, id_at(1, &mut random), words, 1).await;
        expected.extend(waits.then(|| (task.id(), task.head.agent)));
    }
    let mut found = store.waiting().await.unwrap();
    found.sort_by_key(|(task, _)| *task);
    expected.sort_by_key(|(task, _)| *task);
    assert_eq!(found, expected);
}
