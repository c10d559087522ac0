//! Approvals and the ledger: written with the commits that tell of them, and shown to owners alone.

use crate::author::{AGENT, Author, CALLER, OWNER, keep};
use crate::home::{File, Home};
use flotilla_core::approval::ApprovalFilter;
use flotilla_core::caller::Scope;
use flotilla_core::ids::{ApprovalId, PrincipalId, TaskId};
use flotilla_core::ports::{Retention, Store};
use flotilla_core::usage::{By, Day, UsageFilter};
use flotilla_protocol::approval::ApprovalState;
use flotilla_protocol::time::Millis;
use flotilla_protocol::usage::MOST_SUM;
use std::sync::Arc;

const ALL: Retention = Retention {
    tasks_before: Some(Millis(i64::MAX / 4)),
    tasks_max: None,
    events_before: None,
    dedupe_before: None,
    dedupe_max: None,
};

fn some(limit: usize) -> ApprovalFilter {
    ApprovalFilter { limit, ..ApprovalFilter::default() }
}

pub async fn approvals_follow_the_log_and_are_their_owner_s(home: &impl Home) {
    let store = home.open();
    let mut task = Author::new(TaskId::fresh());
    task.keep(&store, "say work approve", 5).await;
    let id = ApprovalId::of(task.id(), 1, "q");
    let head = store.head(Scope::Admin, task.id()).await.unwrap().unwrap();
    assert_eq!(head.open_approvals, [id]);
    let asked = store.approval(Scope::Agent { owner: OWNER }, id).await.unwrap().expect("the owner sees it");
    assert_eq!((asked.state(), asked.run, asked.created_at), (ApprovalState::Open, 1, Millis(5)));
    for scope in [Scope::Own { principal: CALLER }, Scope::Caller { principal: CALLER, agent: AGENT }] {
        assert!(store.approval(scope, id).await.unwrap().is_none(), "{scope:?}");
        assert!(store.approvals(scope, some(9)).await.unwrap().is_empty());
    }
    assert_eq!(store.expiring().await.unwrap(), [(Millis(9_000), task.id(), id)]);
    assert!(store.standing_approval(task.id(), "Bash").await.unwrap().is_none());
    task.keep(&store, "always", 6).await;
    let settled = store.approval(Scope::Admin, id).await.unwrap().unwrap();
    assert_eq!(
        settled.settled.as_ref().map(|settled| (settled.at, settled.answer.by.as_str())),
        Some((Millis(6), "anna"))
    );
    assert!(store.expiring().await.unwrap().is_empty());
    assert_eq!(store.standing_approval(task.id(), "Bash").await.unwrap().map(|found| found.id), Some(id));
    let other = keep(&store, TaskId::fresh(), "say work approve cancel", 7).await;
    let listed = store.approvals(Scope::Admin, some(9)).await.unwrap();
    assert_eq!(listed.iter().map(|one| one.task).collect::<Vec<_>>(), [other.id(), task.id()], "the newest first");
    assert_eq!(listed[0].state(), ApprovalState::Withdrawn);
    let rest = ApprovalFilter { before: Some(listed[0].id), ..some(9) };
    assert_eq!(store.approvals(Scope::Admin, rest).await.unwrap(), listed[1..]);
    let open = ApprovalFilter { state: Some(ApprovalState::Open), ..some(9) };
    assert!(store.approvals(Scope::Admin, open).await.unwrap().is_empty());
    store.sweep(ALL).await.unwrap();
    assert!(store.approval(Scope::Admin, listed[0].id).await.unwrap().is_none(), "they go with their task");
}

async fn used(store: &Arc<dyn Store>, by: By, filter: UsageFilter) -> Vec<(String, u64, Option<u64>)> {
    let sums = store.usage(Scope::Agent { owner: OWNER }, by, filter).await.unwrap();
    sums.into_iter().map(|sum| (sum.key, sum.tasks, sum.usage.figures[0])).collect()
}

pub async fn usage_is_summed_by_day_and_outlives_its_task(home: &impl Home) {
    let store = home.open();
    let day = 86_400_000;
    let mut task = Author::new(TaskId::fresh());
    task.keep(&store, "say work use use", 10).await;
    task.keep(&store, "use done", day + 10).await;
    let all = || UsageFilter { limit: 99, ..UsageFilter::default() };
    let days = used(&store, By::Day, all()).await;
    assert_eq!(days, [("1970-01-02".to_owned(), 1, Some(7)), ("1970-01-01".to_owned(), 1, Some(14))]);
    let since = UsageFilter { since: Some(Day(1)), ..all() };
    assert_eq!(used(&store, By::Task, since).await, [(task.id().to_string(), 1, Some(7))]);
    assert_eq!(used(&store, By::Context, all()).await, [("context".to_owned(), 1, Some(21))]);
    for scope in [Scope::Own { principal: CALLER }, Scope::Caller { principal: CALLER, agent: AGENT }] {
        assert!(store.usage(scope, By::Task, all()).await.unwrap().is_empty(), "{scope:?}");
    }
    assert_eq!(store.usage_below(task.id()).await.unwrap().figures[0], Some(21));
    store.sweep(ALL).await.unwrap();
    assert!(store.head(Scope::Admin, task.id()).await.unwrap().is_none());
    assert_eq!(used(&store, By::Task, all()).await, [(task.id().to_string(), 1, Some(21))]);
}

pub async fn usage_is_booked_on_whoever_does_the_work(home: &impl Home) {
    let store = home.open();
    let theirs = PrincipalId(9);
    store.agent("doer", theirs).await.unwrap();
    let mut task = Author::new(TaskId::fresh());
    task.keep(&store, "say work use given use use done", 10).await;
    let all = || UsageFilter { limit: 99, ..UsageFilter::default() };
    let of = async |owner| {
        let sums = store.usage(Scope::Agent { owner }, By::Agent, all()).await.unwrap();
        sums.into_iter().map(|sum| (sum.key, sum.usage.figures[0])).collect::<Vec<_>>()
    };
    assert_eq!(of(theirs).await, [("doer".to_owned(), Some(14))]);
    assert_eq!(of(OWNER).await.len(), 1, "what was used before is the agent's it was sent to");
    let whole = store.usage(Scope::Admin, By::Task, all()).await.unwrap();
    assert_eq!(whole.iter().map(|sum| (sum.tasks, sum.usage.figures[0])).collect::<Vec<_>>(), [(1, Some(21))]);
    let another = PrincipalId(10);
    store.agent("before", another).await.unwrap();
    let mut passed_on = Author::new(TaskId::fresh());
    passed_on.keep(&store, "say ask say given use late done", 10).await;
    assert_eq!(of(another).await, [("before".to_owned(), Some(7))], "also of a run that it has no more");
    assert_eq!(of(theirs).await, [("doer".to_owned(), Some(21))]);
}

pub async fn the_ledger_is_there_again(home: &impl Home) {
    let mut task = Author::new(TaskId::fresh());
    task.keep(&home.open(), "say work approve use", 10).await;
    let store = home.open();
    let head = store.head(Scope::Admin, task.id()).await.unwrap().unwrap();
    assert_eq!(head, task.head, "with what is open");
    assert_eq!(store.expiring().await.unwrap().len(), 1);
    assert_eq!(store.usage_below(task.id()).await.unwrap().reports, 1);
}

#[tokio::test]
async fn figures_that_are_too_large_break_nothing() {
    let home = File::new();
    let (mut huge, mut usual) = (Author::new(TaskId::fresh()), Author::new(TaskId::fresh()));
    huge.keep(&home.open(), "say work use", 10).await;
    usual.keep(&home.open(), "say work use", 10).await;
    let damage = "UPDATE usage SET input = 9223372036854775807, output = 9.9e18, cost = -1";
    assert_eq!(rusqlite::Connection::open(home.store()).unwrap().execute(damage, []).unwrap(), 2);
    let store = home.open();
    let all = UsageFilter { limit: 99, ..UsageFilter::default() };
    let days = store.usage(Scope::Admin, By::Day, all).await.unwrap();
    let full = Some(MOST_SUM);
    assert_eq!(days[0].usage.figures, [full, full, None, None, full]);
    usual.keep(&store, "use", 11).await;
    assert_eq!(store.usage_below(usual.id()).await.unwrap().figures, [full, full, None, None, full]);
}
