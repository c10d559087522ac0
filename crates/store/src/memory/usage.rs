//! The ledger in memory: one sum for each task, day and agent that did it.

use super::Memory;
use super::table::Tables;
use flotilla_core::caller::Scope;
use flotilla_core::ids::{AgentId, PrincipalId, TaskId, WorkspaceId};
use flotilla_core::ports::{Commit, Later, UsageStore};
use flotilla_core::usage::{By, Day, Sum, UsageFilter, assigned, told_by};
use flotilla_protocol::usage::Usage;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

pub struct Line {
    owner: PrincipalId,
    context: Arc<str>,
    usage: Usage,
}

type Place = (TaskId, Day, AgentId);

#[derive(Default)]
pub struct Ledger {
    lines: BTreeMap<Place, Line>,
    /// Who has a task's work, where that is not the agent it was sent to.
    doers: HashMap<TaskId, (AgentId, PrincipalId)>,
}

impl Ledger {
    /// `agent` finds an agent, and whose it is, by its name.
    pub fn write(&mut self, commit: &Commit, agent: impl Fn(&str) -> Option<(AgentId, PrincipalId)>) {
        let head = &commit.head;
        if let Some(doer) = assigned(&commit.change.events).and_then(&agent) {
            self.doers.insert(head.id, doer);
        }
        let Some(usage) = Usage::of(&commit.change.events) else { return };
        let earlier = told_by(&commit.change.events).and_then(agent);
        let doer = earlier.or_else(|| self.doers.get(&head.id).copied());
        let (agent, owner) = doer.unwrap_or((head.agent, head.owner));
        let line = self.lines.entry((head.id, Day::of(commit.change.at), agent)).or_insert_with(|| Line {
            owner,
            context: Arc::clone(&head.context),
            usage: Usage::default(),
        });
        line.usage.add(&usage);
    }

    pub fn forget(&mut self, task: TaskId) {
        self.doers.remove(&task);
    }
}

fn is_wanted(scope: Scope, filter: &UsageFilter, (task, day, agent): Place, line: &Line) -> bool {
    let seen = match scope {
        Scope::Agent { owner } => line.owner == owner,
        Scope::Admin => true,
        Scope::Caller { .. } | Scope::Own { .. } => false,
    };
    seen && filter.since.is_none_or(|since| day >= since)
        && filter.until.is_none_or(|until| day <= until)
        && filter.task.is_none_or(|wanted| wanted == task)
        && filter.agents.as_ref().is_none_or(|agents| agents.contains(&agent))
        && filter.context.as_ref().is_none_or(|context| **context == *line.context)
}

fn sums(tables: &Tables, scope: Scope, by: By, filter: &UsageFilter) -> Vec<Sum> {
    let mut sums: HashMap<String, (Day, BTreeSet<TaskId>, Usage)> = HashMap::new();
    for (&(task, day, agent), line) in
        tables.ledger.lines.iter().filter(|(place, line)| is_wanted(scope, filter, **place, line))
    {
        let key = match by {
            By::Task => task.to_string(),
            By::Agent => tables.agent_name(agent),
            By::Context => line.context.to_string(),
            By::Workspace => tables.keyring.workspace_of(line.owner),
            By::Day => day.name(),
        };
        let (latest, tasks, usage) = sums.entry(key).or_insert_with(|| (day, BTreeSet::new(), Usage::default()));
        *latest = (*latest).max(day);
        tasks.insert(task);
        usage.add(&line.usage);
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by(|(a, (day_a, ..)), (b, (day_b, ..))| Reverse((day_a, a)).cmp(&Reverse((day_b, b))));
    let sum = |(key, (_, tasks, usage)): (String, (Day, BTreeSet<TaskId>, Usage))| Sum {
        key,
        tasks: tasks.len() as u64,
        usage,
    };
    sums.into_iter().take(filter.limit).map(sum).collect()
}

fn below(tables: &Tables, task: TaskId) -> Usage {
    let (mut all, mut waiting) = (Usage::default(), vec![task]);
    while let Some(task) = waiting.pop() {
        let days = (task, Day(i64::MIN), AgentId(i64::MIN))..=(task, Day(i64::MAX), AgentId(i64::MAX));
        tables.ledger.lines.range(days).for_each(|(_, line)| all.add(&line.usage));
        waiting.extend(tables.children(Scope::Admin, task, usize::MAX).into_iter().map(|head| head.id));
    }
    all
}

impl UsageStore for Memory {
    fn usage_below(&self, task: TaskId) -> Later<Usage> {
        self.now(|tables| below(tables, task))
    }
    fn workspace_name(&self, id: WorkspaceId) -> Later<String> {
        self.now(|tables| tables.keyring.workspace_name(id))
    }
    fn usage(&self, scope: Scope, by: By, filter: UsageFilter) -> Later<Vec<Sum>> {
        self.now(|tables| sums(tables, scope, by, &filter))
    }
}
