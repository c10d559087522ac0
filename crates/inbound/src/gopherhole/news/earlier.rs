//! Tasks that a caller of the dialect began before it connected: it is told of these as well.

use super::{News, tell_now};
use crate::app::App;
use flotilla_core::caller::Caller;
use flotilla_core::error::Error;
use flotilla_core::hub::OwnPage;
use flotilla_core::registry::Agent;
use flotilla_core::rights::Right;
use flotilla_protocol::a2a::model::{Task, TaskState};
use flotilla_protocol::a2a::request::ListTasksRequest;
use flotilla_protocol::gopherhole;
use flotilla_protocol::time::Millis;
use flotilla_protocol::wire::Int32;
use std::sync::Arc;

/// How many of a caller's tasks are followed from its connecting on, those that changed last first.
const MOST: i32 = 100;
const UNDER_WAY: [TaskState; 4] =
    [TaskState::Submitted, TaskState::Working, TaskState::InputRequired, TaskState::AuthRequired];

/// Follows what a caller that has just connected began earlier: over HTTP, on another connection, before the hub's start.
pub fn catch_up(app: &Arc<App>, caller: &Caller) {
    // Those without a key are many, and none of them has tasks of its own.
    if caller.is_anonymous() || caller.check(Right::TasksRead).is_err() {
        return;
    }
    let (app, caller, connected_at) = (Arc::clone(app), caller.clone(), app.now());
    tokio::spawn(async move {
        if let Err(error) = follow(&app, &caller, connected_at).await {
            tracing::warn!(caller = %caller.name, %error, "what it began earlier is not told to a caller");
        }
    });
}

async fn follow(app: &Arc<App>, caller: &Caller, connected_at: Millis) -> Result<(), Error> {
    let Ok(_turn) = app.followed.searches.acquire().await else { return Ok(()) };
    let request = ListTasksRequest { page_size: Some(Int32(MOST)), ..ListTasksRequest::default() };
    let open = of_dialect(app, app.hub.list_own(caller, &request, &UNDER_WAY, None).await?);
    for (agent, task) in &open {
        drop(News::of(app, caller, agent, task));
    }
    // What ended before it was looked for, and while its caller was connected.
    let request = ListTasksRequest { status_timestamp_after: Some(connected_at), ..request };
    for (agent, task) in of_dialect(app, app.hub.list_own(caller, &request, &[], None).await?) {
        if task.status.state.is_terminal() && !open.iter().any(|(_, known)| known.id == task.id) {
            tell_now(app, caller, &agent, task.id).await;
        }
    }
    Ok(())
}

/// Those that were begun in the dialect, with agents that are still here.
fn of_dialect(app: &App, page: OwnPage) -> Vec<(Arc<Agent>, Task)> {
    let registry = app.hub.registry();
    let found = page.sides.iter().zip(page.list.tasks).filter(|(_, task)| gopherhole::speaks_of(task));
    found.filter_map(|(sides, task)| Some((Arc::clone(registry.by_name(&sides.agent)?), task))).collect()
}
