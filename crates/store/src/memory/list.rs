//! Pages of tasks, newest status first.

use super::table::{Tables, Task};
use flotilla_core::ids::{AgentId, PrincipalId, TaskId};
use flotilla_core::ports::{EARLIER, ListFilter, ListPage, Record};
use flotilla_protocol::a2a::model::TaskState;
use flotilla_protocol::event::Event;
use flotilla_protocol::time::Millis;
use std::collections::{BTreeSet, HashMap};

pub fn page(tables: &Tables, principal: PrincipalId, agent: AgentId, filter: &ListFilter) -> ListPage {
    let states: Vec<u8> = match filter.state {
        Some(state) => vec![state as u8],
        None => TaskState::ALL.iter().skip(1).map(|state| *state as u8).collect(),
    };
    let (mut places, total) = if filter.context.is_some() {
        in_context(tables, principal, agent, filter, &states)
    } else {
        by_state(tables, principal, agent, filter, &states)
    };
    places.sort_by(|a, b| b.cmp(a));
    let mut more = places.len() > filter.limit;
    let chosen = places.into_iter().take(filter.limit);
    let (mut records, mut sizes, mut bytes) = (Vec::new(), Vec::new(), 0);
    for task in chosen.filter_map(|(_, id)| tables.tasks.get(&id)) {
        if !filter.has_room(bytes, task.bytes) {
            more = true;
            break;
        }
        bytes += task.bytes;
        records.push(record(task, filter.with_artifacts));
        sizes.push(task.bytes);
    }
    ListPage { records, sizes, total, more }
}

pub fn open(tables: &Tables) -> Vec<(PrincipalId, usize)> {
    let mut open: HashMap<PrincipalId, usize> = HashMap::new();
    for task in tables.tasks.values().filter(|task| !task.head.is_over()) {
        *open.entry(task.head.principal).or_default() += 1;
    }
    open.into_iter().collect()
}

type Place = (Millis, TaskId);

fn since(filter: &ListFilter) -> Millis {
    filter.status_since.unwrap_or(Millis(i64::MIN))
}

/// Each state is sorted by itself: one more than a page of each holds the page.
fn by_state(
    tables: &Tables,
    principal: PrincipalId,
    agent: AgentId,
    filter: &ListFilter,
    states: &[u8],
) -> (Vec<Place>, u64) {
    let from = (since(filter), TaskId::from_bytes([0; 16]));
    let (mut places, mut total) = (Vec::new(), 0);
    for state in states {
        let Some(set) = tables.by_status.get(&(principal.0, agent.0, *state)) else { continue };
        total += if filter.status_since.is_some() { set.range(from..).count() } else { set.len() };
        let before = filter.after.unwrap_or((Millis(i64::MAX), TaskId::from_bytes([255; 16])));
        if from < before {
            places.extend(set.range(from..before).rev().take(filter.limit + 1));
        }
    }
    (places, total as u64)
}

fn in_context(
    tables: &Tables,
    principal: PrincipalId,
    agent: AgentId,
    filter: &ListFilter,
    states: &[u8],
) -> (Vec<Place>, u64) {
    let ids = filter.context.as_deref().and_then(|context| tables.by_context.get(context));
    let heads = ids.into_iter().flatten().filter_map(|id| tables.tasks.get(id)).map(|task| &task.head);
    let fitting: Vec<Place> = heads
        .filter(|head| head.principal == principal && head.agent == agent && states.contains(&head.state_code()))
        .filter(|head| head.status_at >= since(filter))
        .map(|head| (head.status_at, head.id))
        .collect();
    let total = fitting.len() as u64;
    let after = filter.after.unwrap_or((Millis(i64::MAX), TaskId::from_bytes([255; 16])));
    (fitting.into_iter().filter(|place| *place < after).collect(), total)
}

pub fn earlier(tables: &Tables, principal: PrincipalId, agent: AgentId, context: &str, before: TaskId) -> Vec<Record> {
    let ids = tables.by_context.get(context);
    let tasks = ids.into_iter().flatten().filter_map(|id| tables.tasks.get(id));
    let theirs = |task: &&Task| task.head.principal == principal && task.head.agent == agent && task.head.id < before;
    let mut found: Vec<&Task> = tasks.filter(theirs).collect();
    found.sort_by_key(|task| std::cmp::Reverse(task.head.id));
    found.into_iter().take(EARLIER).map(|task| record(task, false)).collect()
}

fn record(task: &Task, with_artifacts: bool) -> Record {
    let mut record = task.record();
    if !with_artifacts {
        let only_output = |event: &Event| matches!(event, Event::Produced { .. } | Event::Noted { .. });
        record.changes.retain(|change| !change.events.iter().all(only_output));
    }
    record
}

pub fn agents(tables: &Tables, principal: PrincipalId) -> Vec<AgentId> {
    let own = tables
        .by_status
        .iter()
        .filter(|((whose, _, state), tasks)| *whose == principal.0 && (1..=8).contains(state) && !tasks.is_empty());
    let agents: BTreeSet<i64> = own.map(|((_, agent, _), _)| *agent).collect();
    agents.into_iter().map(AgentId).collect()
}

pub fn callers(tables: &Tables, agent: AgentId) -> Vec<PrincipalId> {
    let theirs = tables
        .by_status
        .iter()
        .filter(|((_, with, state), tasks)| *with == agent.0 && (1..=8).contains(state) && !tasks.is_empty());
    let callers: BTreeSet<i64> = theirs.map(|((principal, ..), _)| *principal).collect();
    callers.into_iter().map(PrincipalId).collect()
}
