//! Hooks: kept by name within a task, settled attempt by attempt, found again by whoever may see them.

use crate::author::{AGENT, CALLER, OWNER, keep};
use crate::home::Home;
use flotilla_core::caller::Scope;
use flotilla_core::ids::{AgentId, HookId, PrincipalId, TaskId};
use flotilla_core::ports::{Retention, Standing, Store};
use flotilla_core::push::{Attempt, Hook, HookChange, HookFilter, HookState, MOST_DELETED, Settled, Target};
use flotilla_protocol::a2a::push::{PushEvents, PushOptions};
use flotilla_protocol::a2a::version::Version;
use flotilla_protocol::time::Millis;
use std::sync::Arc;

fn hook(task: TaskId, id: &str) -> Hook {
    Hook {
        uid: HookId::fresh(),
        task,
        id: id.into(),
        principal: CALLER,
        agent: AGENT,
        owner: OWNER,
        target: Target {
            url: format!("https://example.com/{id}"),
            origin: "https://example.com".into(),
            scheme: "Bearer".into(),
            sealed: vec![0, 1, 255],
        },
        options: PushOptions { events: PushEvents::Status, ..PushOptions::default() },
        version: Version::V03,
        created_at: Millis(5),
        cursor: 0,
        state: HookState::Active,
        held: false,
        failures: 0,
        next_at: None,
        attempts: 0,
        reason: String::new(),
        generation: 0,
    }
}

/// The attempt at event `peer_seq`; where the hook stands after it.
fn settled(hook: &Hook, peer_seq: u64, delivered: bool) -> Settled {
    let next_at = (!delivered).then_some(Millis(99));
    let reason = if delivered { String::new() } else { "HTTP 500".to_owned() };
    Settled {
        hook: hook.uid,
        generation: hook.generation,
        cursor: if delivered { peer_seq } else { peer_seq - 1 },
        state: HookState::Active,
        failures: u32::from(!delivered),
        next_at,
        reason: reason.clone(),
        attempt: Some(Attempt {
            number: 0,
            peer_seq,
            at: Millis(50),
            millis: 7,
            status: Some(if delivered { 204 } else { 500 }),
            delivered,
            next_at,
            reason,
        }),
    }
}

async fn added(store: &Arc<dyn Store>, hook: Hook) -> Hook {
    store.add_hook(hook, 10).await.unwrap().expect("there is room")
}

pub async fn hooks_are_read_back_by_those_who_may_see_them(home: &impl Home) {
    let store = home.open();
    let task = TaskId::fresh();
    let first = added(&store, hook(task, "a")).await;
    let second = added(&store, hook(task, "b")).await;
    added(&store, hook(TaskId::fresh(), "a")).await;
    assert_eq!(store.hooks(Scope::Admin, task).await.unwrap(), [first.clone(), second.clone()], "whole");
    for (scope, sees) in [
        (Scope::Caller { principal: CALLER, agent: AGENT }, true),
        (Scope::Agent { owner: OWNER }, true),
        (Scope::Admin, true),
        (Scope::Caller { principal: OWNER, agent: AGENT }, false),
        (Scope::Agent { owner: CALLER }, false),
        (Scope::Agent { owner: PrincipalId::OWNER }, false),
    ] {
        let expected = if sees { vec![first.uid, second.uid] } else { Vec::new() };
        let found: Vec<_> = store.hooks(scope, task).await.unwrap().iter().map(|hook| hook.uid).collect();
        assert_eq!(found, expected, "{scope:?}");
        assert_eq!(store.hook(scope, first.uid).await.unwrap().is_some(), sees, "{scope:?}");
        let filter = HookFilter { task: Some(task), limit: 10, ..HookFilter::default() };
        assert_eq!(store.hook_page(scope, filter).await.unwrap().len(), expected.len(), "{scope:?}");
        let changed = store.change_hook(scope, second.uid, HookChange::Redeliver { after: None }).await.unwrap();
        assert_eq!(changed.is_some(), sees, "{scope:?}");
        if !sees {
            assert_eq!(store.remove_hook(scope, task, "a").await.unwrap(), None, "{scope:?}");
        }
    }
    assert_eq!(store.remove_hook(Scope::Admin, task, "a").await.unwrap(), Some(first.uid));
    assert_eq!(store.remove_hook(Scope::Admin, task, "a").await.unwrap(), None);
    assert_eq!(store.hooks(Scope::Admin, task).await.unwrap().len(), 1);
}

pub async fn a_task_has_so_many_and_one_of_the_same_name_is_renewed(home: &impl Home) {
    let store = home.open();
    let task = TaskId::fresh();
    let first = store.add_hook(hook(task, "a"), 2).await.unwrap().unwrap();
    store.add_hook(hook(task, "b"), 2).await.unwrap().unwrap();
    assert_eq!(store.add_hook(hook(task, "c"), 2).await.unwrap(), None);
    store.settle_hook(settled(&first, 4, true)).await.unwrap();
    let mut other = hook(task, "a");
    other.target.url = "https://example.org/".into();
    let renewed = store.add_hook(other, 2).await.unwrap().unwrap();
    assert_eq!((renewed.uid, renewed.cursor, renewed.generation), (first.uid, 4, 1), "it keeps its place");
    assert_eq!(renewed.target.url, "https://example.org/");
    assert_eq!(store.hook(Scope::Admin, first.uid).await.unwrap(), Some(renewed));
}

pub async fn a_deleted_one_is_kept_for_its_owner_alone(home: &impl Home) {
    let store = home.open();
    let task = TaskId::fresh();
    let caller = Scope::Caller { principal: CALLER, agent: AGENT };
    let first = store.add_hook(hook(task, "a"), 1).await.unwrap().unwrap();
    store.settle_hook(settled(&first, 1, false)).await.unwrap();
    let deleted = store.change_hook(caller, first.uid, HookChange::Delete).await.unwrap().unwrap();
    assert_eq!(
        (deleted.state, deleted.target.sealed.len(), deleted.target.scheme.as_str()),
        (HookState::Deleted, 0, "")
    );
    assert_eq!(deleted.reason, "HTTP 500; deleted by its caller");
    assert_eq!(store.hooks(caller, task).await.unwrap(), [], "it is not listed");
    let filter = HookFilter { task: Some(task), limit: 9, ..HookFilter::default() };
    assert_eq!(store.hook_page(Scope::Agent { owner: OWNER }, filter).await.unwrap(), [deleted]);
    assert_eq!(store.attempts(Scope::Agent { owner: OWNER }, first.uid, 9).await.unwrap().len(), 1);
    let redeliver = HookChange::Redeliver { after: Some(0) };
    let still = store.change_hook(Scope::Admin, first.uid, redeliver).await.unwrap().unwrap();
    assert_eq!(still.state, HookState::Deleted, "there is nowhere to deliver to");
    // It does not count, and comes back by its name alone, from where the new one is to begin.
    store.add_hook(hook(task, "b"), 1).await.unwrap().expect("there is room");
    let again = store.add_hook(Hook { cursor: 7, ..hook(task, "a") }, 2).await.unwrap().unwrap();
    assert_eq!((again.uid, again.state, again.cursor, again.attempts), (first.uid, HookState::Active, 7, 1));
    // What the owner stopped stays stopped.
    let stop = HookChange::Disable { reason: "enough".into() };
    store.change_hook(Scope::Admin, first.uid, stop).await.unwrap();
    store.change_hook(caller, first.uid, HookChange::Delete).await.unwrap();
    let held = store.add_hook(hook(task, "a"), 2).await.unwrap().unwrap();
    assert_eq!((held.state, held.held, held.reason.as_str()), (HookState::Disabled, true, "enough"));
    assert_eq!(store.hook(Scope::Admin, first.uid).await.unwrap(), Some(held));
}

pub async fn a_task_can_leave_so_many_deleted_ones_behind(home: &impl Home) {
    let store = home.open();
    let task = TaskId::fresh();
    for number in 0..MOST_DELETED {
        let one = store.add_hook(hook(task, &number.to_string()), 1).await.unwrap().expect("there is room");
        store.change_hook(Scope::Admin, one.uid, HookChange::Delete).await.unwrap();
    }
    assert_eq!(store.add_hook(hook(task, "new"), 1).await.unwrap(), None);
    assert!(store.add_hook(hook(task, "7"), 1).await.unwrap().is_some(), "one of an old name has its place");
}

pub async fn attempts_are_numbered_and_kept_with_what_came_of_them(home: &impl Home) {
    let store = home.open();
    let one = added(&store, hook(TaskId::fresh(), "a")).await;
    for (peer_seq, delivered) in [(1, false), (1, true), (2, true)] {
        store.settle_hook(settled(&one, peer_seq, delivered)).await.unwrap();
    }
    let now = store.hook(Scope::Admin, one.uid).await.unwrap().unwrap();
    assert_eq!((now.cursor, now.attempts, now.failures, now.next_at), (2, 3, 0, None));
    let attempts = store.attempts(Scope::Admin, one.uid, 10).await.unwrap();
    let told: Vec<_> = attempts.iter().map(|attempt| (attempt.number, attempt.peer_seq, attempt.delivered)).collect();
    assert_eq!(told, [(3, 2, true), (2, 1, true), (1, 1, false)]);
    assert_eq!(
        (attempts[2].status, attempts[2].next_at, attempts[2].reason.as_str()),
        (Some(500), Some(Millis(99)), "HTTP 500")
    );
    assert_eq!(store.attempts(Scope::Admin, one.uid, 1).await.unwrap().len(), 1);
    assert_eq!(store.attempts(Scope::Agent { owner: CALLER }, one.uid, 10).await.unwrap(), []);
    for peer_seq in 3..1_100 {
        store.settle_hook(settled(&one, peer_seq, true)).await.unwrap();
    }
    let attempts = store.attempts(Scope::Admin, one.uid, 5_000).await.unwrap();
    assert_eq!((attempts.len(), attempts[0].number), (1_000, 1_100), "the oldest go");
}

pub async fn what_an_attempt_began_with_may_have_changed(home: &impl Home) {
    let store = home.open();
    let one = added(&store, hook(TaskId::fresh(), "a")).await;
    let change = HookChange::Disable { reason: "enough".into() };
    let disabled = store.change_hook(Scope::Admin, one.uid, change).await.unwrap().unwrap();
    assert_eq!((disabled.state, disabled.generation), (HookState::Disabled, 1));
    store.settle_hook(settled(&one, 1, true)).await.unwrap();
    let now = store.hook(Scope::Admin, one.uid).await.unwrap().unwrap();
    assert_eq!((now.state, now.cursor, now.attempts), (HookState::Disabled, 0, 1), "seen, but it moves nothing");
    let back = HookChange::Redeliver { after: Some(3) };
    let again = store.change_hook(Scope::Admin, one.uid, back).await.unwrap().unwrap();
    assert_eq!((again.state, again.cursor, again.generation), (HookState::Active, 3, 2));
    store.remove_hook(Scope::Admin, one.task, "a").await.unwrap();
    store.settle_hook(settled(&again, 4, true)).await.unwrap();
    assert_eq!(store.hook(Scope::Admin, one.uid).await.unwrap(), None, "one that was deleted stays so");
}

pub async fn active_hooks_come_with_where_their_tasks_stand(home: &impl Home) {
    let store = home.open();
    let task = keep(&store, TaskId::fresh(), "say! work chunk", 1).await;
    let here = added(&store, hook(task.id(), "a")).await;
    let gone = added(&store, hook(TaskId::fresh(), "a")).await;
    let parked = added(&store, hook(task.id(), "b")).await;
    let over = Settled { state: HookState::Parked, attempt: None, ..settled(&parked, 1, true) };
    store.settle_hook(over).await.unwrap();
    let first = store.active_hooks(None, 1).await.unwrap();
    let rest = store.active_hooks(Some(first[0].0.uid), 10).await.unwrap();
    let found: Vec<_> = first.iter().chain(&rest).map(|(hook, standing)| (hook.uid, *standing)).collect();
    assert_eq!(found, [(here.uid, Standing::At(task.head.peer_seq)), (gone.uid, Standing::Gone)]);
}

pub async fn pages_are_newest_first_and_by_state(home: &impl Home) {
    let store = home.open();
    let mut all = Vec::new();
    for n in 0..5 {
        all.push(added(&store, hook(TaskId::fresh(), &n.to_string())).await.uid);
    }
    all.reverse();
    let page = |filter: HookFilter| {
        let page = store.hook_page(Scope::Admin, filter);
        async { page.await.unwrap().iter().map(|hook| hook.uid).collect::<Vec<_>>() }
    };
    assert_eq!(page(HookFilter { limit: 3, ..HookFilter::default() }).await, all[..3]);
    assert_eq!(page(HookFilter { limit: 3, before: Some(all[2]), ..HookFilter::default() }).await, all[3..]);
    store.change_hook(Scope::Admin, all[1], HookChange::Disable { reason: String::new() }).await.unwrap();
    let disabled = HookFilter { limit: 9, state: Some(HookState::Disabled), ..HookFilter::default() };
    assert_eq!(page(disabled).await, [all[1]]);
    let of_agent = |agent| HookFilter { limit: 9, agent: Some(agent), ..HookFilter::default() };
    assert_eq!(page(of_agent(AGENT)).await, all);
    assert_eq!(page(of_agent(AgentId(AGENT.0 + 1))).await, []);
}

pub async fn hooks_go_with_their_task(home: &impl Home) {
    let store = home.open();
    let task = keep(&store, TaskId::fresh(), "say! work done", 1).await;
    let one = added(&store, hook(task.id(), "a")).await;
    store.settle_hook(settled(&one, 1, true)).await.unwrap();
    let retention = Retention { tasks_max: Some(0), ..Retention::default() };
    assert_eq!(store.sweep(retention).await.unwrap().tasks, 1);
    assert_eq!(store.hook(Scope::Admin, one.uid).await.unwrap(), None);
    assert_eq!(store.attempts(Scope::Admin, one.uid, 9).await.unwrap(), []);
}

pub async fn what_is_settled_together_is_all_there(home: &impl Home) {
    let store = home.open();
    let mut hooks = Vec::new();
    for _ in 0..50 {
        hooks.push(added(&store, hook(TaskId::fresh(), "a")).await);
    }
    let settling: Vec<_> =
        hooks.iter().flat_map(|hook| [1, 2, 3].map(|n| store.settle_hook(settled(hook, n, true)))).collect();
    for settled in settling {
        settled.await.unwrap();
    }
    for hook in hooks {
        let now = store.hook(Scope::Admin, hook.uid).await.unwrap().unwrap();
        assert_eq!((now.cursor, now.attempts), (3, 3));
    }
}

pub async fn hooks_are_there_again(home: &impl Home) {
    let store = home.open();
    let one = added(&store, hook(TaskId::fresh(), "a")).await;
    store.settle_hook(settled(&one, 1, false)).await.unwrap();
    let before = store.hook(Scope::Admin, one.uid).await.unwrap();
    drop(store);
    let store = home.open();
    assert_eq!(store.hook(Scope::Admin, one.uid).await.unwrap(), before);
    assert_eq!(store.attempts(Scope::Admin, one.uid, 9).await.unwrap().len(), 1);
}
