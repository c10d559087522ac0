//! News of tasks for callers of the dialect who are connected: the whole task, each time its state changes.

use crate::app::App;
use crate::reading::{Reading, Turn};
use flotilla_core::caller::Caller;
use flotilla_core::hub::Ended;
use flotilla_core::registry::Agent;
use flotilla_protocol::a2a::model::{StreamResponse, Task};
use flotilla_protocol::a2a::request::GetTaskRequest;
use flotilla_protocol::{gopherhole, hub_frame};
use std::sync::Arc;
use std::time::Duration;

/// How long a reader waits for news before it looks whether anybody still listens.
const PATIENCE: Duration = Duration::from_secs(60);

/// Follows a task for as long as its caller is connected. They are also free to poll, so nothing is lost with a line.
pub fn tell(app: &Arc<App>, caller: &Caller, agent: &Arc<Agent>, task: &Task) {
    if app.lines.of(caller.principal).is_empty() || task.status.state.is_terminal() {
        return;
    }
    let (app, caller, agent, id) = (Arc::clone(app), caller.clone(), Arc::clone(agent), task.id.clone());
    let told = task.status.state;
    tokio::spawn(async move {
        let Ok(follow) = app.hub.subscribe(&caller, agent.id, &id, None, Ended::Refused).await else {
            // It has ended since its caller was told of it: then there is only that to tell.
            return tell_now(&app, &caller, &agent, id).await;
        };
        let mut reading = Reading::new(&app, app.access.leave(&caller), Box::new(follow));
        loop {
            let turn = reading.next(PATIENCE).await;
            let lines = app.lines.of(caller.principal);
            let mut changed = false;
            match turn {
                Ok(Turn::Frames) => {
                    while let Some(framed) = reading.take() {
                        changed |= match &framed.frame {
                            // The first frame: the task as its caller was just told, or as it is by now.
                            StreamResponse::Task(task) => task.status.state != told,
                            StreamResponse::StatusUpdate(_) => true,
                            _ => false,
                        };
                    }
                }
                Ok(Turn::Quiet) => {}
                Ok(Turn::End | Turn::Stopping) | Err(_) => return,
            }
            if lines.is_empty() {
                return;
            }
            if changed {
                tell_now(&app, &caller, &agent, id.clone()).await;
            }
        }
    });
}

/// Tells the task as it is to all who listen.
async fn tell_now(app: &App, caller: &Caller, agent: &Agent, id: String) {
    let request = GetTaskRequest { id, ..GetTaskRequest::default() };
    let Ok(task) = app.hub.get_task(caller.with_agent(agent.id), &request).await else { return };
    let frame = hub_frame::task_update(&gopherhole::task(&task));
    for line in app.lines.of(caller.principal) {
        // One that is full misses this news, and finds the task when it asks for it.
        let _ = line.try_send(frame.clone());
    }
}
