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
use flotilla_protocol::lineage::Ancestor;
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
    let ancestors: Vec<Value> = tree.ancestors.iter().map(|(one, head)| ancestor(one, head.as_ref())).collect();
    json!({
        "hubId": app.hub.store().hub_id(),
        "ancestors": ancestors,
        "task": nodes.pop(),
        "more": tree.more,
    })
}

fn ancestor(one: &Ancestor, head: Option<&Head>) -> Value {
    let mut shown = json!(one);
    if let Some(head) = head {
        shown["state"] = head.state.name().into();
        shown["provenance"] = head.provenance().name().into();
        shown["deadline"] = head.deadline.map(|at| at.to_string()).into();
    }
    shown
}

fn node(app: &App, head: &Head) -> Value {
    let origin = head.origin.as_deref();
    let registry = app.hub.registry();
    json!({
        "taskId": head.id.to_string(),
        "contextId": &*head.context,
        "agent": registry.by_id(head.agent).map(|agent| agent.name.clone()),
        "state": head.state.name(),
        "provenance": head.provenance().name(),
        "hops": origin.map_or(0, |origin| origin.hops),
        "parentTaskId": head.parent_task(),
        "createdAt": head.created_at.to_string(),
        "deadline": head.deadline.map(|at| at.to_string()),
        "children": [],
    })
}
