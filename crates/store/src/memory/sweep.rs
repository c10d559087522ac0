//! What retention removes from memory.

use super::table::{Tables, Task};
use flotilla_core::ids::TaskId;
use flotilla_core::ports::{Folded, Retention, Swept};
use flotilla_core::project::Fold;
use flotilla_protocol::time::Millis;

/// How much one call does: short enough that commits hardly wait for it.
const STEP: usize = 200;

pub fn sweep(tables: &mut Tables, retention: &Retention) -> Swept {
    Swept {
        tasks: remove_tasks(tables, retention),
        logs: drop_events(tables, retention),
        sends: forget_sends(tables, retention),
    }
}

fn ended_before(task: &Task, before: Millis) -> bool {
    task.head.is_over() && task.head.status_at.max(task.head.created_at) < before
}

fn remove_tasks(tables: &mut Tables, retention: &Retention) -> u64 {
    let mut doomed: Vec<TaskId> = Vec::new();
    if let Some(before) = retention.tasks_before {
        let old = tables.tasks.range(..TaskId::floor_of(before.0)).filter(|(_, task)| ended_before(task, before));
        doomed.extend(old.map(|(id, _)| *id).take(STEP));
    }
    if let Some(max) = retention.tasks_max {
        let over = |task: &&Task| task.head.is_over();
        let ended = tables.tasks.values().filter(over).count();
        let excess = (ended - doomed.len()).saturating_sub(usize::try_from(max).unwrap_or(usize::MAX)).min(STEP);
        let oldest = tables.tasks.values().filter(over).map(|task| task.head.id);
        let more: Vec<TaskId> = oldest.filter(|id| !doomed.contains(id)).take(excess).collect();
        doomed.extend(more);
    }
    for id in &doomed {
        tables.remove(*id);
    }
    doomed.len() as u64
}

/// Old ended tasks keep what they came to, not how.
fn drop_events(tables: &mut Tables, retention: &Retention) -> u64 {
    let Some(before) = retention.events_before else { return 0 };
    let old = tables.tasks.range_mut(..TaskId::floor_of(before.0)).map(|(_, task)| task);
    let mut dropped = 0;
    for task in old.filter(|task| task.fold.is_none() && ended_before(task, before)).take(STEP) {
        let mut fold = Fold::default();
        for change in &task.log {
            fold.change(change, u64::MAX);
        }
        task.fold = Some(Folded { seq: task.head.seq, peer_seq: task.head.peer_seq, fold, from: None });
        task.log.clear();
        dropped += 1;
    }
    dropped
}

fn forget_sends(tables: &mut Tables, retention: &Retention) -> u64 {
    let mut forgotten = 0;
    while forgotten < STEP as u64 * 5 {
        let too_many = retention.dedupe_max.is_some_and(|max| tables.order.len() as u64 > max);
        let oldest = tables.order.front().map(|(_, at)| *at);
        let too_old = oldest.zip(retention.dedupe_before).is_some_and(|(at, before)| at < before);
        if !too_many && !too_old {
            break;
        }
        tables.forget_oldest_send();
        forgotten += 1;
    }
    forgotten
}
