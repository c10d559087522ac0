//! News of tasks for callers of the dialect who are connected: the whole task, each time its state changes.

mod earlier;

pub use earlier::catch_up;

use super::parties;
use crate::app::App;
use crate::reading::{Reading, Turn};
use crate::ws::lines::Outgoing;
use flotilla_core::caller::Caller;
use flotilla_core::held_bytes::Account;
use flotilla_core::hub::Ended;
use flotilla_core::registry::Agent;
use flotilla_protocol::a2a::model::{StreamResponse, Task, TaskState};
use flotilla_protocol::a2a::request::GetTaskRequest;
use flotilla_protocol::{gopherhole, hub_frame};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Semaphore;

/// How long a reader waits for news before it looks whether anybody still listens.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long the news of a task wait for the answer over HTTP that began it to be read: a client that sees the end of a
/// task before it knows the task waits for the end for ever.
const AFTER_HTTP: Duration = Duration::from_millis(100);

/// Callers whose earlier tasks are looked for at once: after a start of the hub they all connect.
const SEARCHES: usize = 4;

/// Tasks whose callers are told of them: whoever says more in one is not told of it twice.
pub struct Followed {
    tasks: Mutex<HashSet<String>>,
    searches: Semaphore,
}

impl Default for Followed {
    fn default() -> Self {
        Self { tasks: Mutex::default(), searches: Semaphore::new(SEARCHES) }
    }
}

impl Followed {
    fn all(&self) -> MutexGuard<'_, HashSet<String>> {
        self.tasks.lock().expect("no panic while holding the tasks that are followed")
    }
}

/// A task that is followed, until this is dropped.
struct Following {
    app: Arc<App>,
    id: String,
    over: bool,
}

impl Following {
    fn begin(app: &Arc<App>, id: &str) -> Option<Self> {
        let is_new = app.followed.all().insert(id.to_owned());
        is_new.then(|| Self { app: Arc::clone(app), id: id.to_owned(), over: false })
    }

    /// Ends it if nobody listens. Whoever connects after that, and says more, begins anew.
    fn is_over(&mut self, caller: &Caller, agent: &Agent) -> bool {
        let mut all = self.app.followed.all();
        self.over = self.app.lines.readers(caller.principal, agent).is_empty();
        if self.over {
            all.remove(&self.id);
        }
        self.over
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        if !self.over {
            self.app.followed.all().remove(&self.id);
        }
    }
}

/// The news of a task, from here on: dropped when its caller has been answered, and knows what they are about.
pub struct News(Option<Telling>);

struct Telling {
    following: Following,
    caller: Caller,
    agent: Arc<Agent>,
    /// As its caller was told.
    state: TaskState,
    /// How long after the answer they begin.
    pause: Duration,
}

impl News {
    /// None if nobody would listen, if there are none to come, or if they are told already. Whoever connects later is told
    /// of what is under way.
    pub fn of(app: &Arc<App>, caller: &Caller, agent: &Arc<Agent>, task: &Task) -> Option<Self> {
        if app.lines.readers(caller.principal, agent).is_empty() || task.status.state.is_terminal() {
            return None;
        }
        let following = Following::begin(app, &task.id)?;
        let (caller, agent, state) = (caller.clone(), Arc::clone(agent), gopherhole::shown_state(task));
        Some(Self(Some(Telling { following, caller, agent, state, pause: Duration::ZERO })))
    }

    /// For a caller who is answered over another connection: what is written there first may be read last.
    pub fn after_http(mut self) -> Self {
        if let Some(telling) = &mut self.0 {
            telling.pause = AFTER_HTTP;
        }
        self
    }
}

impl Drop for News {
    fn drop(&mut self) {
        // There is no runtime where the hub has stopped.
        if let (Some(telling), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(telling.run());
        }
    }
}

impl Telling {
    /// Follows the task for as long as its caller is connected. They are also free to poll, so nothing is lost with a line.
    async fn run(self) {
        let Self { mut following, caller, agent, state: told, pause } = self;
        let (app, id) = (Arc::clone(&following.app), following.id.clone());
        tokio::time::sleep(pause).await;
        let Ok(follow) = app.hub.subscribe(&caller, agent.id, &id, None, Ended::Refused).await else {
            // It has ended since its caller was told of it: then there is only that to tell.
            return tell_now(&app, &caller, &agent, id).await;
        };
        let mut reading = Reading::new(&app, app.access.leave(&caller), Box::new(follow));
        loop {
            let turn = reading.next(PATIENCE).await;
            let mut changed = false;
            match turn {
                Ok(Turn::Frames) => {
                    while let Some(framed) = reading.take() {
                        changed |= match &framed.frame {
                            // The first frame: the task as its caller was just told, or as it is by now.
                            StreamResponse::Task(task) => gopherhole::shown_state(task) != told,
                            StreamResponse::StatusUpdate(_) => true,
                            _ => false,
                        };
                    }
                }
                Ok(Turn::Quiet) => {}
                Ok(Turn::End | Turn::Stopping) | Err(_) => return,
            }
            if following.is_over(&caller, &agent) {
                return;
            }
            if changed {
                tell_now(&app, &caller, &agent, id.clone()).await;
            }
        }
    }
}

/// Tells the task as it is to all who listen and may read it.
async fn tell_now(app: &App, caller: &Caller, agent: &Agent, id: String) {
    let request = GetTaskRequest { id, ..GetTaskRequest::default() };
    let Ok(task) = app.hub.get_task(caller.with_agent(agent.id), &request).await else { return };
    let frame = hub_frame::task_update(&gopherhole::task(&task, &parties(caller, agent)));
    for line in app.lines.readers(caller.principal, agent) {
        // One that is full misses this news, and finds the task when it asks for it.
        let mut held = app.hub.held_bytes().open(Account::Caller(caller.principal));
        if held.grow(frame.len()).is_ok() {
            let _ = line.try_send(Outgoing { text: frame.clone(), held: Some(held) });
        }
    }
}
