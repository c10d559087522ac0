//! Reads: one task, a page of tasks.

use super::{Hub, LiveRef};
use crate::caller::{Caller, Scope};
use crate::error::Error;
use crate::ids::TaskId;
use crate::limits::Limit;
use crate::page;
use crate::ports::{Folded, ListFilter, Record, Tail, View};
use crate::project::{Artifacts, Fold, Want};
use crate::registry::Agent;
use crate::task::{Head, Kind};
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::model::{Task, TaskState};
use flotilla_protocol::a2a::request::{GetTaskRequest, ListTasksRequest, ListTasksResponse, SendMessageRequest};
use flotilla_protocol::a2a::validate;
use flotilla_protocol::event::Change;
use flotilla_protocol::wire::Int32;
use std::sync::Arc;

const DEFAULT_PAGE: i32 = 50;
/// How many changes are read at once to find the beginning of a task.
const EARLY: usize = 8;

/// How much of the task its sender asked for.
pub(super) fn wanted(request: &SendMessageRequest) -> Want {
    let asked = request.configuration.as_ref().and_then(|configuration| configuration.history_length);
    Want { history: history_bound(asked), artifacts: Artifacts::Include }
}

/// `historyLength` as a bound (spec 3.2.4): absent is no bound, zero is none at all.
pub fn history_bound(length: Option<Int32>) -> Option<usize> {
    length.map(|Int32(n)| usize::try_from(n).unwrap_or(0))
}

impl Hub {
    pub async fn get_task(self: &Arc<Self>, scope: Scope, request: &GetTaskRequest) -> Result<Task, Error> {
        validate::task_id("id", &request.id)?;
        validate::history_length(request.history_length)?;
        let id = TaskId::parse(&request.id).ok_or_else(|| Refusal::no_task(&request.id))?;
        let want = Want { history: history_bound(request.history_length), artifacts: Artifacts::Include };
        // One that is worked on, and asked about meanwhile, is in memory. For whoever may not see it that is no shorter
        // way: it would tell that it is there.
        let live = self.lives.find(id).filter(|live| live.is_seen_by(scope));
        let found = match live.and_then(|live| live.whole()) {
            Some((head, changes)) => Some((head, fold_changes(Fold::default(), &changes, u64::MAX))),
            None => {
                let _turn = self.turns.task(scope.principal()).await;
                let view = View { until: u64::MAX, history: want.history };
                self.store.shown(scope, id, view).await?.map(|record| folded(record, u64::MAX))
            }
        };
        match found {
            Some((head, folded)) if head.kind == Kind::Task => Ok(folded.into_task(&head, want)),
            _ => Err(Refusal::no_task(&request.id).into()),
        }
    }

    /// The task as it is committed now, from memory if memory has all of it.
    pub(super) async fn view(&self, live: &LiveRef, want: Want) -> Result<Task, Error> {
        let (head, fold) = self.folded(live, u64::MAX, want.history).await?;
        Ok(fold.into_task(&head, want))
    }

    /// The log folded up to a peer-visible event.
    pub(super) async fn folded(
        &self,
        live: &LiveRef,
        until: u64,
        history: Option<usize>,
    ) -> Result<(Head, Fold), Error> {
        if let Some((head, changes)) = live.whole() {
            let folded = fold_changes(Fold::default(), &changes, until);
            return Ok((head, folded));
        }
        let record = self.store.shown(Scope::Admin, live.id(), View { until, history }).await?;
        let record = record.ok_or_else(|| Refusal::no_task(&live.id().to_string()))?;
        Ok(folded(record, until))
    }

    /// The same for an event near the beginning: what comes after the next one, however much, is not read.
    pub(super) async fn folded_early(&self, live: &LiveRef, until: u64) -> Result<(Head, Fold), Error> {
        let (mut folded, mut seq) = (Fold::default(), 0);
        let Some(head) = live.committed().filter(|_| live.whole().is_none()) else {
            return self.folded(live, until, None).await;
        };
        loop {
            let changes = match self.store.after(Scope::Admin, live.id(), seq, EARLY).await? {
                Tail::Changes(changes) => changes,
                // Its events are gone, but not what they came to.
                Tail::Pruned => return self.folded(live, until, None).await,
            };
            folded = fold_changes(folded, &changes, until);
            match changes.last() {
                Some(last) if last.last_peer_seq() <= until => seq = last.last_seq(),
                _ => return Ok((head, folded)),
            }
        }
    }

    pub async fn list_tasks(
        &self,
        caller: &Caller,
        agent: &Agent,
        request: &ListTasksRequest,
    ) -> Result<ListTasksResponse, Error> {
        validate::list_tasks(request)?;
        let most = self.limits().page;
        let page_size = request.page_size.map_or(DEFAULT_PAGE.min(most), |Int32(n)| n);
        if page_size > most {
            let text = format!("must be between 1 and {most} inclusive, got {page_size}; read on with nextPageToken");
            return Err(Limit::Page.refuse_field(most, "pageSize", text).into());
        }
        let artifacts = if request.include_artifacts { Artifacts::Always } else { Artifacts::Omit };
        let want = Want { history: history_bound(request.history_length), artifacts };
        let filter = ListFilter {
            context: Some(request.context_id.clone()).filter(|context| !context.is_empty()),
            state: Some(request.status).filter(|state| *state != TaskState::Unspecified),
            status_since: request.status_timestamp_after,
            after: page::parse(&request.page_token)?,
            limit: usize::try_from(page_size).unwrap_or(1),
            bytes: self.limits().page_bytes,
            with_artifacts: request.include_artifacts,
            history: want.history,
        };
        let _turn = self.turns.page(caller.principal).await;
        let found = self.store.list(caller.principal, agent.id, filter).await?;
        let last = found.records.last().filter(|_| found.more);
        let next_page_token =
            last.map_or_else(String::new, |record| page::token(record.head.status_at, record.head.id));
        let total_size = i64::try_from(found.total).unwrap_or(i64::MAX);
        let tasks = found.records.into_iter().map(|record| shown(record, want)).collect();
        Ok(ListTasksResponse { tasks, next_page_token, page_size, total_size })
    }
}

pub(super) fn folded(record: Record, until: u64) -> (Head, Fold) {
    let start = record.fold.map(|Folded { fold, .. }| fold).unwrap_or_default();
    (record.head, fold_changes(start, &record.changes, until))
}

/// The task as its caller sees it.
pub(super) fn shown(record: Record, want: Want) -> Task {
    let (head, fold) = folded(record, u64::MAX);
    fold.into_task(&head, want)
}

pub(super) fn fold_changes(mut folded: Fold, changes: &[Arc<Change>], until: u64) -> Fold {
    for change in changes {
        if !folded.change(change, until) {
            break;
        }
    }
    folded
}
