//! The tree of delegated tasks: what a task is part of, and what is part of it.

use crate::answer::{JSON, with_type};
use crate::app::App;
use crate::asked::check;
use crate::{caller, rest};
use axum::body::Body;
use flotilla_core::error::{Error, Fault};
use flotilla_core::hub::Tree;
use flotilla_core::rights::Right;
use flotilla_core::task::Head;
use http::request::Parts;
use http::{Response, StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;

/// `GET /api/tasks/{id}/tree`.
pub async fn show(app: &Arc<App>, id: &str, request: &Parts) -> Response<Body> {
    answered(app, id, request).await.unwrap_or_else(|error| rest::refuse(app, &app.refusal(error)))
}

async fn answered(app: &Arc<App>, id: &str, request: &Parts) -> Result<Response<Body>, Error> {
    let caller = caller::identify(app, request).await?;
    caller.check(Right::TasksRead)?;
    check(&[], &request.uri)?;
    let tree = app.hub.tree(&caller, id).await?;
    let answer = shown(app, &tree);
    let body = serde_json::to_vec(&answer).map_err(|error| Fault::new(format!("encoding a tree: {error}")))?;
    Ok(with_type(StatusCode::OK, JSON, body))
}

fn shown(app: &App, tree: &Tree) -> Value {
    let mut nodes: Vec<Value> = tree.branches.iter().map(|branch| node(app, &branch.head)).collect();
    // Children come after their parents, so from the last on each is whole when it is put below its own.
    for place in (1..nodes.len()).rev() {
        let Some(child) = nodes.pop() else { break };
        if let Some(parent) = tree.branches[place].parent
            && let Some(children) = nodes[parent]["children"].as_array_mut()
        {
            children.insert(0, child);
        }
    }
    let root = tree.branches.first();
    let ancestors = root.and_then(|branch| branch.head.origin.as_ref()).map(|origin| origin.chain.clone());
    json!({
        "hubId": app.hub.store().hub_id(),
        "ancestors": ancestors.unwrap_or_default(),
        "task": nodes.pop(),
        "more": tree.more,
    })
}

fn node(app: &App, head: &Head) -> Value {
    let origin = head.origin.as_deref();
    let registry = app.hub.registry();
    json!({
        "taskId": head.id.to_string(),
        "contextId": &*head.context,
        "agent": registry.by_id(head.agent).map(|agent| agent.name.clone()),
        "state": head.state.name(),
        "provenance": origin.map_or("local", |origin| origin.provenance.name()),
        "hops": origin.map_or(0, |origin| origin.hops),
        "parentTaskId": origin.and_then(|origin| origin.parent()).map(|parent| parent.task.clone()).filter(|id| !id.is_empty()),
        "createdAt": head.created_at.to_string(),
        "deadline": head.deadline.map(|at| at.to_string()),
        "children": [],
    })
}
