//! Tasks without the name of their agent: all of a caller's own, and those an agent has to do with.

use super::Hub;
use super::read::{fold, history_bound};
use crate::caller::{Caller, Scope};
use crate::error::{Error, Fault};
use crate::fleet::FLEET;
use crate::ids::TaskId;
use crate::page;
use crate::ports::{ListFilter, Record};
use crate::project::{Artifacts, Want};
use crate::registry::Agent;
use crate::roster::Reported;
use crate::task::{Head, Kind};
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::model::{Task, TaskState};
use flotilla_protocol::a2a::request::{ListTasksRequest, ListTasksResponse};
use flotilla_protocol::a2a::validate;
use flotilla_protocol::wire::Int32;
use flotilla_protocol::work::Report;
use std::cmp::Reverse;
use std::sync::Arc;
use tokio::sync::oneshot;

impl Hub {
    /// The agent one of a caller's tasks is with.
    pub async fn agent_of(&self, caller: &Caller, id: &str) -> Result<Option<Arc<Agent>>, Fault> {
        let Some(id) = TaskId::parse(id) else { return Ok(None) };
        let head = self.store.head(Scope::Own { principal: caller.principal }, id).await?;
        Ok(head.and_then(|head| self.registry.load().by_id(head.agent).cloned()))
    }

    /// Whether a task is, or was, an agent's to do.
    pub async fn is_of_agent(&self, agent: &Agent, task: TaskId) -> Result<bool, Fault> {
        let fleet = self.registry.load().by_name(FLEET).map(|fleet| fleet.id);
        let of = |head: Head| head.agent == agent.id || (Some(head.agent) == fleet && self.fleet.has(&agent.name));
        Ok(self.store.head(Scope::Admin, task).await?.is_some_and(of))
    }

    /// A task as the agent sees that has it to do: what its caller sees.
    pub async fn task_of_agent(&self, agent: &Agent, id: &str) -> Result<Task, Error> {
        let no_task = || Refusal::no_task(id);
        let parsed = TaskId::parse(id).ok_or_else(no_task)?;
        let record = self.store.record(Scope::Admin, parsed).await?;
        // An exchange that is no task yet is one for whoever works on it.
        let record = record.filter(|record| record.head.agent == agent.id && record.head.kind != Kind::Message);
        let record = record.ok_or_else(no_task)?;
        Ok(fold(&record, u64::MAX).into_task(&record.head, Want::ALL))
    }

    /// What an agent says of its run without a connection of its own; the task after it is kept.
    pub async fn respond(&self, agent: &Agent, task: TaskId, run: u32, reports: Vec<Report>) -> Result<Task, Error> {
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

    /// A page of a caller's tasks with all agents.
    pub async fn list_own(&self, caller: &Caller, request: &ListTasksRequest) -> Result<ListTasksResponse, Error> {
        validate::list_tasks(request)?;
        let most = self.limits().page;
        let page_size = request.page_size.map_or(most, |Int32(size)| size.min(most));
        let limit = usize::try_from(page_size).unwrap_or(1);
        let filter = ListFilter {
            context: Some(request.context_id.clone()).filter(|context| !context.is_empty()),
            state: Some(request.status).filter(|state| *state != TaskState::Unspecified),
            status_since: request.status_timestamp_after,
            after: page::parse(&request.page_token)?,
            limit,
            bytes: self.limits().page_bytes,
            with_artifacts: true,
        };
        let (mut records, mut total, mut more): (Vec<Record>, u64, bool) = (Vec::new(), 0, false);
        for agent in self.store.agents_of(caller.principal).await? {
            let page = self.store.list(caller.principal, agent, filter.clone()).await?;
            records.extend(page.records);
            total += page.total;
            more |= page.more;
        }
        records.sort_by_key(|record| Reverse((record.head.status_at, record.head.id)));
        more |= records.len() > limit;
        records.truncate(limit);
        let last = records.last().filter(|_| more);
        let next_page_token = last.map_or_else(String::new, |last| page::token(last.head.status_at, last.head.id));
        let want = Want { history: history_bound(request.history_length), artifacts: Artifacts::Include };
        let tasks = records.iter().map(|record| fold(record, u64::MAX).into_task(&record.head, want)).collect();
        let total_size = i64::try_from(total).unwrap_or(i64::MAX);
        Ok(ListTasksResponse { tasks, next_page_token, page_size, total_size })
    }
}
