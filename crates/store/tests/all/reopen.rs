//! Opening again: what was acknowledged is there, and the store is the same one.

use crate::author::{AGENT, Author, CALLER, WORDS, id_at, outcomes, queue};
use crate::home::{File, Home};
use crate::random::Random;
use crate::send::{dedupe, first};
use flotilla_core::caller::Scope;
use flotilla_core::ids::TaskId;
use flotilla_core::ports::{ListFilter, Sent};
use flotilla_core::task::{Kind, RunState};

pub async fn everything_is_there_again(home: &impl Home) {
    let mut random = Random::new(1);
    let mut tasks: Vec<Author> = (0..40).map(|_| Author::new(id_at(1, &mut random))).collect();
    for round in 0..5 {
        let store = home.open();
        let mut told = Vec::new();
        for task in &mut tasks {
            for _ in 0..3 {
                if let Some(draft) = task.draft(random.pick(&WORDS), round) {
                    task.kept(&draft);
                    told.extend(queue(&store, [draft]));
                }
            }
        }
        assert!(outcomes(told).await.iter().all(|outcome| *outcome == "kept"));
    }
    let store = home.open();
    for task in tasks.iter().filter(|task| task.head.version > 0) {
        let record = store.record(Scope::Admin, task.id()).await.unwrap().unwrap();
        assert_eq!((&record.head, &record.changes), (&task.head, &task.log));
    }
    let listed = tasks.iter().filter(|task| task.head.kind == Kind::Task).count();
    let filter = ListFilter { limit: 100, ..ListFilter::default() };
    let page = store.list(CALLER, AGENT, filter).await.unwrap();
    assert_eq!((page.total, page.records.len()), (listed as u64, listed));
    let open = tasks.iter().filter(|task| task.head.run_state != RunState::Idle).count();
    assert_eq!(store.open_runs().await.unwrap().len(), open);
}

pub async fn sends_are_remembered(home: &impl Home) {
    let mut random = Random::new(2);
    let used = dedupe(&mut random);
    let draft = first(&mut random, 1, used);
    let sent = Sent { task: draft.head.id, hash: used.hash };
    assert_eq!(outcomes(queue(&home.open(), [draft])).await, ["kept"]);
    let again = first(&mut random, 2, used);
    let fresh = dedupe(&mut random);
    let other = first(&mut random, 2, fresh);
    assert_eq!(outcomes(queue(&home.open(), [again, other])).await, ["duplicate", "kept"]);
    let store = home.open();
    assert_eq!(store.sent(used.key).await.unwrap(), Some(sent));
    assert!(store.sent(fresh.key).await.unwrap().is_some());
}

pub async fn the_epoch_stays(home: &impl Home) {
    let epoch = home.open().epoch().clone();
    assert!(!epoch.0.is_empty() && !epoch.0.contains('.'));
    for _ in 0..3 {
        assert_eq!(*home.open().epoch(), epoch);
    }
}

/// Whoever made a commit may end before it sees to it; then the writer's thread does.
#[test]
fn what_its_maker_left_is_kept_when_the_store_is_closed() {
    let home = File::new();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let store = runtime.block_on(async {
        let store = home.open();
        // Until the thread has nothing to do any more.
        loop {
            let (tell, told) = tokio::sync::oneshot::channel();
            let draft = Author::new(TaskId::fresh()).draft("say!", 1).unwrap();
            if store.commit(draft.into_commit(Box::new(move |result| drop(tell.send(result))))) {
                store.attend();
                break;
            }
            told.await.unwrap().unwrap();
        }
        store
    });
    drop(runtime);
    let draft = Author::new(TaskId::fresh()).draft("say!", 1).unwrap();
    let id = draft.head.id;
    assert!(store.commit(draft.into_commit(Box::new(|_| {}))), "it is its maker's to see to");
    drop(store);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let found = runtime.block_on(async { home.open().head(Scope::Admin, id).await });
    assert!(found.unwrap().is_some());
}
