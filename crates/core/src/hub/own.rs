//! Tasks without the name of their agent: all of a caller's own, and those an agent has to do with.

use super::Hub;
use super::read::{history_bound, shown};
use crate::caller::{Caller, Scope};
use crate::error::{Error, Fault};
use crate::fleet::FLEET;
use crate::ids::{AgentId, PrincipalId, TaskId};
use crate::page;
use crate::ports::{ListFilter, Record, View};
use crate::project::{Artifacts, Want};
use crate::registry::Agent;
use crate::roster::Reported;
use crate::task::{Head, Kind};
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::model::{Task, TaskState};
use flotilla_protocol::a2a::request::{ListTasksRequest, ListTasksResponse};
use flotilla_protocol::a2a::validate;
use flotilla_protocol::event::Event;
use flotilla_protocol::time::Millis;
use flotilla_protocol::wire::Int32;
use flotilla_protocol::work::Report;
use std::cmp::Reverse;
use std::sync::Arc;
use tokio::sync::oneshot;

/// A task as its agent sees it.
pub struct OfAgent {
    pub task: Task,
    /// Who asked, empty where that is not known any more.
    pub from: String,
}

/// A page of a caller's tasks.
pub struct OwnPage {
    pub list: ListTasksResponse,
    /// Of each of them.
    pub sides: Vec<Sides>,
}

/// Who asked and who was asked; empty where that is not known any more.
pub struct Sides {
    pub from: String,
    pub agent: String,
}

impl Hub {
    /// The agent one of a caller's tasks is with, if the caller's key sees that agent.
    pub async fn agent_of(&self, caller: &Caller, id: &str) -> Result<Option<Arc<Agent>>, Fault> {
        let Some(id) = TaskId::parse(id) else { return Ok(None) };
        let head = self.store.head(Scope::Own { principal: caller.principal }, id).await?;
        let agent = head.and_then(|head| self.registry.load().by_id(head.agent).cloned());
        Ok(agent.filter(|agent| agent.is_seen_by(caller)))
    }

    /// The agents a caller has tasks with, as far as the caller's key sees them.
    pub(super) async fn agents_seen(&self, caller: &Caller) -> Result<Vec<Arc<Agent>>, Fault> {
        let ids = self.store.agents_of(caller.principal).await?;
        let registry = self.registry.load();
        let agents = ids.into_iter().filter_map(|id| registry.by_id(id).cloned());
        Ok(agents.filter(|agent| agent.is_seen_by(caller)).collect())
    }

    /// Whether a task is, or was, an agent's to do.
    pub async fn is_of_agent(&self, agent: &Agent, task: TaskId) -> Result<bool, Fault> {
        Ok(self.last_run(agent, task).await?.is_some())
    }

    /// The number of the last run of a task that is, or was, an agent's to do; none of any other task.
    pub async fn last_run(&self, agent: &Agent, task: TaskId) -> Result<Option<u32>, Fault> {
        let fleet = self.registry.load().by_name(FLEET).map(|fleet| fleet.id);
        let of = |head: &Head| head.agent == agent.id || (Some(head.agent) == fleet && self.fleet.has(&agent.name));
        Ok(self.store.head(Scope::Admin, task).await?.filter(of).map(|head| head.run))
    }

    /// A task as the agent sees that has it to do: what its caller sees.
    pub async fn task_of_agent(&self, agent: &Agent, id: &str) -> Result<OfAgent, Error> {
        let no_task = || Refusal::no_task(id);
        let parsed = TaskId::parse(id).ok_or_else(no_task)?;
        let view = View { until: u64::MAX, history: None };
        let _turn = self.turns.task(Some(agent.owner)).await;
        let record = self.store.shown(Scope::Admin, parsed, view).await?;
        // An exchange that is no task yet is one for whoever works on it.
        let record = record.filter(|record| record.head.agent == agent.id && record.head.kind != Kind::Message);
        let record = record.ok_or_else(no_task)?;
        let from = asked_by(&record);
        Ok(OfAgent { task: shown(record, Want::ALL), from })
    }

    /// What an agent says of its run without a connection of its own; the task after it is kept.
    pub async fn respond(&self, agent: &Agent, task: TaskId, run: u32, reports: Vec<Report>) -> Result<OfAgent, Error> {
        let id = task.to_string();
        let desk = self.roster.desk(agent.id);
        let to = desk.reports_of(task, run).ok_or_else(|| Refusal::no_task(&id))?;
        let (kept, told) = oneshot::channel();
        let over = |_| Refusal::no_task(&id);
        to.send(Reported { reports, acknowledged: false, gone: None, kept })
            .await
            .map_err(|_| Refusal::no_task(&id))?;
        told.await.map_err(over)?;
        self.task_of_agent(agent, &id).await
    }

    /// A page of a caller's tasks with all agents, in all states or some, whatever state the request names. Where the
    /// caller is an agent itself, what it has to do for others is among them.
    pub async fn list_own(
        &self,
        caller: &Caller,
        request: &ListTasksRequest,
        states: &[TaskState],
        inbox: Option<&Agent>,
    ) -> Result<OwnPage, Error> {
        validate::list_tasks(request)?;
        let most = self.limits().page;
        let page_size = request.page_size.map_or(most, |Int32(size)| size.min(most));
        let limit = usize::try_from(page_size).unwrap_or(1);
        let filter = ListFilter {
            context: Some(request.context_id.clone()).filter(|context| !context.is_empty()),
            state: None,
            status_since: request.status_timestamp_after,
            after: page::parse(&request.page_token)?,
            limit,
            bytes: self.limits().page_bytes,
            with_artifacts: true,
            history: history_bound(request.history_length),
        };
        let (mut found, mut total, mut known) = (Vec::new(), 0, None);
        let states: Vec<_> = if states.is_empty() { vec![None] } else { states.iter().copied().map(Some).collect() };
        let _turn = self.turns.page(caller.principal).await;
        for (principal, agent) in self.pairs(caller, inbox).await? {
            for state in &states {
                let asked = ListFilter { state: *state, ..filter.clone() };
                let page = self.store.list(principal, agent, asked).await?;
                // What is older than the end of a page that has more may have something before it.
                known = known.max(page.records.last().filter(|_| page.more).map(place));
                total += page.total;
                found.extend(page.records.into_iter().zip(page.sizes));
                known = known.max(shorten(&mut found, &filter));
            }
        }
        let (records, more) = merged(found, known, &filter);
        let last = records.last().filter(|_| more);
        let next_page_token = last.map_or_else(String::new, |last| page::token(last.head.status_at, last.head.id));
        let want = Want { history: history_bound(request.history_length), artifacts: Artifacts::Include };
        let total_size = i64::try_from(total).unwrap_or(i64::MAX);
        let registry = self.registry.load();
        let sides = |record: &Record| Sides {
            from: if record.head.principal == caller.principal {
                caller.shown_as().to_owned()
            } else {
                asked_by(record)
            },
            agent: registry.by_id(record.head.agent).map(|agent| agent.name.clone()).unwrap_or_default(),
        };
        let sides = records.iter().map(sides).collect();
        let tasks = records.into_iter().map(|record| shown(record, want)).collect();
        Ok(OwnPage { list: ListTasksResponse { tasks, next_page_token, page_size, total_size }, sides })
    }

    /// Who asked whom, of all tasks a caller has a part in.
    async fn pairs(&self, caller: &Caller, inbox: Option<&Agent>) -> Result<Vec<(PrincipalId, AgentId)>, Fault> {
        let own = self.agents_seen(caller).await?;
        let mut pairs: Vec<_> = own.into_iter().map(|agent| (caller.principal, agent.id)).collect();
        if let Some(agent) = inbox {
            let callers = self.store.callers_of(agent.id).await?;
            pairs.extend(callers.into_iter().filter(|one| *one != caller.principal).map(|one| (one, agent.id)));
        }
        Ok(pairs)
    }
}

fn asked_by(record: &Record) -> String {
    if let Some(from) = record.fold.as_ref().and_then(|fold| fold.from.clone()) {
        return from;
    }
    let mut events = record.changes.iter().flat_map(|change| &change.events);
    let from = events.find_map(|event| match event {
        Event::Asked { from, .. } => Some(from.clone()),
        _ => None,
    });
    from.unwrap_or_default()
}

/// An agent may have many callers, and one page holds what is shown of all. Says where what was let go begins.
fn shorten(found: &mut Vec<(Record, usize)>, filter: &ListFilter) -> Option<(Millis, TaskId)> {
    let bytes: usize = found.iter().map(|(_, size)| size).sum();
    if found.len() <= filter.limit * 2 && bytes <= filter.bytes * 2 {
        return None;
    }
    found.sort_by_key(|(record, _)| Reverse(place(record)));
    let mut bytes = 0;
    let fits = found.iter().take(filter.limit).take_while(|(_, size)| {
        let fits = filter.has_room(bytes, *size);
        bytes += size;
        fits
    });
    let kept = fits.count() + 1;
    if kept >= found.len() {
        return None;
    }
    found.truncate(kept);
    found.last().map(|(record, _)| place(record))
}

fn place(record: &Record) -> (Millis, TaskId) {
    (record.head.status_at, record.head.id)
}

/// The pages of several agents as one, newest first, as far as all of them are `known`; and whether there is more.
fn merged(
    mut found: Vec<(Record, usize)>,
    known: Option<(Millis, TaskId)>,
    filter: &ListFilter,
) -> (Vec<Record>, bool) {
    found.sort_by_key(|(record, _)| Reverse(place(record)));
    let (all, mut bytes) = (found.len(), 0);
    let fits = |(record, size): &(Record, usize)| {
        let fits = filter.has_room(bytes, *size) && known.is_none_or(|known| place(record) >= known);
        bytes += size;
        fits
    };
    let records: Vec<Record> =
        found.into_iter().take(filter.limit).take_while(fits).map(|(record, _)| record).collect();
    let more = known.is_some() || records.len() < all;
    (records, more)
}
