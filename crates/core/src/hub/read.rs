//! Reads: one task, a page of tasks, the owner's log.

use super::{Hub, LiveRef};
use crate::caller::{Caller, Scope};
use crate::error::Error;
use crate::ids::TaskId;
use crate::limits::Limit;
use crate::ports::{Folded, ListFilter, Record};
use crate::project::{Artifacts, Fold, Want};
use crate::registry::Agent;
use crate::task::{Head, Kind};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::model::{Task, TaskState};
use flotilla_protocol::a2a::request::{GetTaskRequest, ListTasksRequest, ListTasksResponse};
use flotilla_protocol::a2a::validate;
use flotilla_protocol::event::Change;
use flotilla_protocol::time::Millis;
use flotilla_protocol::wire::Int32;
use std::sync::Arc;

const DEFAULT_PAGE: i32 = 50;

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
        let record = self.store.record(scope, id).await?;
        match record {
            Some(record) if record.head.kind == Kind::Task => Ok(fold(&record, u64::MAX).into_task(&record.head, want)),
            _ => Err(Refusal::no_task(&request.id).into()),
        }
    }

    /// The task as it is committed now, from memory if memory has all of it.
    pub(super) async fn view(&self, live: &LiveRef, want: Want) -> Result<Task, Error> {
        let (head, fold) = self.folded(live, u64::MAX).await?;
        Ok(fold.into_task(&head, want))
    }

    /// The log folded up to a peer-visible event.
    pub(super) async fn folded(&self, live: &LiveRef, until: u64) -> Result<(Head, Fold), Error> {
        if let Some((head, changes)) = live.whole() {
            let folded = fold_changes(Fold::default(), &changes, until);
            return Ok((head, folded));
        }
        let record = self.store.record(Scope::Admin, live.id()).await?;
        let record = record.ok_or_else(|| Refusal::no_task(&live.id().to_string()))?;
        let folded = fold(&record, until);
        Ok((record.head, folded))
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
            after: parse_page_token(&request.page_token)?,
            limit: usize::try_from(page_size).unwrap_or(1),
            bytes: self.limits().page_bytes,
            with_artifacts: request.include_artifacts,
        };
        let page = self.store.list(caller.principal, agent.id, filter).await?;
        let last = page.records.last().filter(|_| page.more);
        let next_page_token = last.map_or_else(String::new, |record| page_token(&record.head));
        let total_size = i64::try_from(page.total).unwrap_or(i64::MAX);
        let tasks = page.records.iter().map(|record| fold(record, u64::MAX).into_task(&record.head, want)).collect();
        Ok(ListTasksResponse { tasks, next_page_token, page_size, total_size })
    }

    /// The owner's view of a task: its head and every event after `seq`, hidden ones too.
    pub async fn owner_log(&self, caller: &Caller, id: &str, seq: u64) -> Result<(Head, Vec<Arc<Change>>), Error> {
        let scope = caller.as_owner();
        let parsed = TaskId::parse(id).ok_or_else(|| Refusal::no_task(id))?;
        let record = self.store.head(scope, parsed).await?.ok_or_else(|| Refusal::no_task(id))?;
        match self.store.after(scope, parsed, seq, usize::MAX).await? {
            crate::ports::Tail::Changes(changes) => Ok((record, changes)),
            crate::ports::Tail::Pruned => Ok((record, Vec::new())),
        }
    }
}

fn fold(record: &Record, until: u64) -> Fold {
    let start = record.fold.as_ref().map(|Folded { fold, .. }| fold.clone()).unwrap_or_default();
    fold_changes(start, &record.changes, until)
}

fn fold_changes(mut folded: Fold, changes: &[Arc<Change>], until: u64) -> Fold {
    for change in changes {
        if !folded.change(change, until) {
            break;
        }
    }
    folded
}

/// Where the next page starts: the place of the last task shown, opaque to callers.
fn page_token(head: &Head) -> String {
    let mut bytes = head.status_at.0.to_be_bytes().to_vec();
    bytes.extend_from_slice(head.id.bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

fn parse_page_token(token: &str) -> Result<Option<(Millis, TaskId)>, Refusal> {
    if token.is_empty() {
        return Ok(None);
    }
    let parsed = URL_SAFE_NO_PAD.decode(token).ok().and_then(|bytes| {
        let (time, id) = bytes.split_at_checked(8)?;
        Some((Millis(i64::from_be_bytes(time.try_into().ok()?)), TaskId::from_bytes(id.try_into().ok()?)))
    });
    parsed.map(Some).ok_or_else(|| Refusal::invalid("pageToken", "is not a token this hub gave; leave it out to start"))
}
