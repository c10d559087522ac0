//! Who sent a message in the dialect last, and by which program: some of its requests do not say so themselves.

use super::agent::own_agent;
use crate::app::App;
use flotilla_core::caller::{Caller, Scope};
use flotilla_core::error::Error;
use flotilla_core::ids::{PrincipalId, TaskId};
use flotilla_protocol::a2a::request::{GetTaskRequest, ListTasksRequest};
use flotilla_protocol::gopherhole;
use flotilla_protocol::wire::Int32;
use http::HeaderMap;
use http::header::USER_AGENT;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

/// More than these are forgotten all at once; their tasks tell then, and the next message says so again.
const KEPT: usize = 100_000;

/// The same of tasks that were begun otherwise: the next request about one reads it again.
const TASKS_KEPT: usize = 10_000;

/// The program a request comes from, as far as that can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// One on the socket, which says nothing of itself there.
    Socket,
    /// What it calls itself, hashed: two programs may share a key.
    Named(u64),
}

impl Program {
    pub fn of(headers: &HeaderMap) -> Self {
        let mut hasher = DefaultHasher::new();
        headers.get(USER_AGENT).map(http::HeaderValue::as_bytes).hash(&mut hasher);
        Self::Named(hasher.finish())
    }

    /// Whether they may be one. Clients on the socket call over HTTP while it is cut.
    fn may_be(self, other: Self) -> bool {
        self == other || self == Self::Socket || other == Self::Socket
    }
}

/// Tasks of a caller that are looked at to find the one that was begun last.
const LATEST: i32 = 10;

/// Whether a request that could be of either dialect is taken for one of this. Where nobody has heard of the caller since
/// the hub's start, their tasks tell.
pub async fn speaks(app: &App, caller: &Caller, program: Program) -> Result<bool, Error> {
    if caller.is_anonymous() {
        return Ok(false);
    }
    if let Some(heard) = app.speakers.heard(caller, program) {
        return Ok(heard);
    }
    let request = ListTasksRequest { page_size: Some(Int32(LATEST)), ..ListTasksRequest::default() };
    let tasks = app.hub.list_own(caller, &request, &[], None).await?.list.tasks;
    let speaks = match tasks.iter().max_by_key(|task| TaskId::parse(&task.id)) {
        Some(latest) if gopherhole::speaks_of(latest) => true,
        Some(_) => {
            app.speakers.learn_other(caller);
            false
        }
        // An agent that has asked nobody: what else could it want to see than what it has to do? One whose connection is
        // in a version of A2A speaks that.
        None => own_agent(app, caller).is_some_and(|agent| !app.hub.roster().desk(agent.id).speaks_a2a()),
    };
    Ok(speaks)
}

/// Whether a task of a caller was begun in the dialect; none if it is not theirs.
pub async fn begun_in_it(app: &App, caller: &Caller, id: &str) -> Result<Option<bool>, Error> {
    let Some(task) = TaskId::parse(id) else { return Ok(None) };
    if app.speakers.begun_otherwise().contains(&(caller.principal, task)) {
        return Ok(Some(false));
    }
    let scope = Scope::Own { principal: caller.principal };
    let request = GetTaskRequest { id: id.to_owned(), history_length: None, ..GetTaskRequest::default() };
    let begun = match app.hub.get_task(scope, &request).await {
        Ok(found) => gopherhole::speaks_of(&found),
        Err(Error::Refused(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    if !begun {
        app.speakers.remember_otherwise(caller, task);
    }
    Ok(Some(begun))
}

/// How somebody spoke last: in the dialect, by that program, or in another.
type Heard = Option<Program>;

#[derive(Default)]
pub struct Speakers {
    /// Whether there was ever one of the dialect: most hubs have none, and each message asks.
    any: AtomicBool,
    last: Mutex<HashMap<PrincipalId, Heard>>,
    /// Tasks of theirs that were begun otherwise, for whoever asks about one again and again.
    otherwise: Mutex<HashSet<(PrincipalId, TaskId)>>,
}

impl Speakers {
    fn last(&self) -> MutexGuard<'_, HashMap<PrincipalId, Heard>> {
        self.last.lock().expect("no panic while holding the speakers")
    }

    /// Whether the last message of a caller was in the dialect, and by this program; none if that is not known here.
    fn heard(&self, caller: &Caller, program: Program) -> Option<bool> {
        self.last().get(&caller.principal).map(|heard| heard.is_some_and(|last| last.may_be(program)))
    }

    /// Whether it is known to have been.
    pub fn know(&self, caller: &Caller, program: Program) -> bool {
        self.heard(caller, program) == Some(true)
    }

    fn note(&self, caller: &Caller, heard: Heard) {
        let mut last = self.last();
        if last.len() >= KEPT {
            last.clear();
        }
        last.insert(caller.principal, heard);
    }

    /// Their tasks tell that they spoke otherwise last, unless a message has told more meanwhile.
    fn learn_other(&self, caller: &Caller) {
        let mut last = self.last();
        if last.len() < KEPT {
            last.entry(caller.principal).or_insert(None);
        }
    }

    fn begun_otherwise(&self) -> MutexGuard<'_, HashSet<(PrincipalId, TaskId)>> {
        self.otherwise.lock().expect("no panic while holding the tasks begun otherwise")
    }

    fn remember_otherwise(&self, caller: &Caller, task: TaskId) {
        let mut otherwise = self.begun_otherwise();
        if otherwise.len() >= TASKS_KEPT {
            otherwise.clear();
        }
        otherwise.insert((caller.principal, task));
    }

    /// They have sent a message in it, and it was taken.
    pub fn remember(&self, caller: &Caller, program: Program) {
        if !caller.is_anonymous() {
            self.any.store(true, Ordering::Relaxed);
            self.note(caller, Some(program));
        }
    }

    /// They have sent a message in another, whatever the binding.
    pub fn forget(&self, caller: &Caller) {
        if self.any.load(Ordering::Relaxed) && !caller.is_anonymous() {
            self.note(caller, None);
        }
    }
}
