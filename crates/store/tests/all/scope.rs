//! Scope: a query sees the tasks its scope names and nothing else; "not yours" looks like "not there".

use crate::author::{AGENT, Author, CALLER, OWNER, folded, id_at, keep, queue};
use crate::home::Home;
use crate::random::Random;
use flotilla_core::caller::Scope;
use flotilla_core::ids::{AgentId, PrincipalId, TaskId};
use flotilla_core::ports::{EARLIER, ListFilter, Tail};

pub async fn a_task_is_seen_by_its_caller_its_owner_and_the_hub(home: &impl Home) {
    let store = home.open();
    let task = keep(&store, TaskId::fresh(), "say! work chunk done", 1).await;
    let other = AgentId(AGENT.0 + 1);
    let stranger = PrincipalId(CALLER.0 + 1);
    for (scope, sees) in [
        (Scope::Caller { principal: CALLER, agent: AGENT }, true),
        (Scope::Agent { owner: OWNER }, true),
        (Scope::Admin, true),
        (Scope::Caller { principal: stranger, agent: AGENT }, false),
        (Scope::Caller { principal: CALLER, agent: other }, false),
        (Scope::Caller { principal: OWNER, agent: AGENT }, false),
        (Scope::Agent { owner: CALLER }, false),
        (Scope::Agent { owner: PrincipalId::OWNER }, false),
    ] {
        assert_eq!(scope.sees(&task.head), sees, "{scope:?}");
        assert_eq!(store.head(scope, task.id()).await.unwrap().is_some(), sees, "{scope:?}");
        assert_eq!(store.record(scope, task.id()).await.unwrap().is_some(), sees, "{scope:?}");
        for tail in [
            store.after(scope, task.id(), 0, 10).await.unwrap(),
            store.after_peer(scope, task.id(), 0, 10).await.unwrap(),
            store.after(scope, task.id(), task.head.seq, 10).await.unwrap(),
            store.after_peer(scope, task.id(), task.head.peer_seq, 10).await.unwrap(),
        ] {
            assert_eq!(matches!(tail, Tail::Changes(_)), sees, "{scope:?}: {tail:?}");
        }
    }
    for tail in [
        store.after(Scope::Admin, TaskId::fresh(), 0, 10).await.unwrap(),
        store.after_peer(Scope::Admin, TaskId::fresh(), 0, 10).await.unwrap(),
    ] {
        assert!(matches!(tail, Tail::Pruned), "a task that is not there");
    }
}

pub async fn an_agent_s_open_tasks_are_counted_over_all_callers(home: &impl Home) {
    let store = home.open();
    let other = AgentId(AGENT.0 + 1);
    assert_eq!(store.open_with(AGENT).await.unwrap(), 0);
    keep(&store, TaskId::fresh(), "say! work chunk done", 1).await;
    keep(&store, TaskId::fresh(), "say! work", 2).await;
    let theirs = PrincipalId(CALLER.0 + 1);
    for (agent, context) in [(AGENT, "theirs"), (other, "elsewhere")] {
        Author::of(TaskId::fresh(), theirs, agent, context).keep(&store, "say! work", 3).await;
    }
    assert_eq!((store.open_with(AGENT).await.unwrap(), store.open_with(other).await.unwrap()), (2, 1));
}

pub async fn an_agent_that_was_given_a_task_is_known(home: &impl Home) {
    let store = home.open();
    assert!(!store.had_tasks(AGENT).await.unwrap());
    keep(&store, TaskId::fresh(), "say! work chunk done", 1).await;
    assert!(store.had_tasks(AGENT).await.unwrap());
    assert!(!store.had_tasks(AgentId(AGENT.0 + 1)).await.unwrap());
}

pub async fn lists_are_of_one_principal_and_agent(home: &impl Home) {
    let store = home.open();
    let mut random = Random::new(1);
    let pairs = [(1, 1), (1, 2), (2, 1), (2, 2), (12, 1), (1, 21)].map(|(p, a)| (PrincipalId(p), AgentId(a)));
    for (principal, agent) in pairs {
        let mut task = Author::of(id_at(1, &mut random), principal, agent, "shared");
        for told in queue(&store, task.write("say! work", 1)) {
            told.await.unwrap().unwrap();
        }
    }
    for (principal, agent) in pairs {
        for context in [None, Some("shared".to_owned())] {
            let filter = ListFilter { context, limit: 10, ..ListFilter::default() };
            let page = store.list(principal, agent, filter).await.unwrap();
            assert_eq!((page.total, page.records.len()), (1, 1));
            assert_eq!((page.records[0].head.principal, page.records[0].head.agent), (principal, agent));
        }
    }
}

pub async fn a_context_s_latest_exchanges_are_found(home: &impl Home) {
    let store = home.open();
    let mut random = Random::new(2);
    let stranger = PrincipalId(CALLER.0 + 1);
    let mut ids = Vec::new();
    for (millis, principal, context, words) in [
        (1, CALLER, "shared", "say! linked done"),
        (2, CALLER, "shared", "say linked answer"),
        (3, stranger, "shared", "say! linked done"),
        (4, CALLER, "other", "say! linked done"),
        (5, CALLER, "shared", "say! work"),
    ] {
        let mut task = Author::of(id_at(millis, &mut random), principal, AGENT, context);
        for told in queue(&store, task.write(words, 1)) {
            told.await.unwrap().unwrap();
        }
        ids.push(task.id());
    }
    let earlier = store.earlier(CALLER, AGENT, "shared", ids[4]).await.unwrap();
    assert_eq!(earlier.iter().map(|record| record.head.id).collect::<Vec<_>>(), [ids[1], ids[0]], "newest first");
    assert_eq!(folded(&earlier[0]).upstream.context, "theirs", "also of an exchange that was no task");
    assert!(store.earlier(CALLER, AGENT, "shared", ids[0]).await.unwrap().is_empty());
    let many = (0..2 * EARLIER as i64).map(|at| id_at(100 + at, &mut random));
    for id in many.collect::<Vec<_>>() {
        let mut task = Author::of(id, CALLER, AGENT, "shared");
        for told in queue(&store, task.write("say", 1)) {
            told.await.unwrap().unwrap();
        }
    }
    assert_eq!(store.earlier(CALLER, AGENT, "shared", TaskId::fresh()).await.unwrap().len(), EARLIER);
}
