//! The owner's view of agents: how each is reached, and whether it is.

use crate::answer::{JSON, with_type};
use crate::app::App;
use crate::{caller, rest};
use axum::body::Body;
use flotilla_core::caller::{Caller, Scope};
use flotilla_core::error::{Error, Fault};
use flotilla_core::registry::Agent;
use flotilla_core::rights::Right;
use http::request::Parts;
use http::{Response, StatusCode};
use serde::Serialize;
use std::sync::Arc;

#[derive(Serialize)]
struct Agents<'a> {
    agents: Vec<Shown<'a>>,
}

#[derive(Serialize)]
struct Shown<'a> {
    name: &'a str,
    description: &'a str,
    /// How an agent elsewhere is reached; absent for those that work in the hub.
    #[serde(skip_serializing_if = "Option::is_none")]
    remote: Option<Remote>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Remote {
    address: String,
    /// What was chosen from its card; absent before that was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    binding: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    breaker: &'static str,
    failures: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// `GET /api/agents`: the agents the caller owns, all of them for whoever administers the hub.
pub async fn list(app: &Arc<App>, request: &Parts) -> Response<Body> {
    let listed = listed(app, request).await;
    listed.unwrap_or_else(|error| rest::refuse(app, &app.refusal(error)))
}

async fn listed(app: &Arc<App>, request: &Parts) -> Result<Response<Body>, Error> {
    let caller = caller::identify(app, request).await?;
    caller.check(Right::AgentsRead)?;
    let registry = app.hub.registry();
    let agents = registry.agents().filter(|agent| is_owned(agent, &caller)).map(|agent| shown(agent)).collect();
    let body =
        serde_json::to_vec(&Agents { agents }).map_err(|error| Fault::new(format!("encoding agents: {error}")))?;
    Ok(with_type(StatusCode::OK, JSON, body))
}

fn is_owned(agent: &Agent, caller: &Caller) -> bool {
    match caller.as_owner() {
        Scope::Admin => true,
        Scope::Agent { owner } => agent.owner == owner,
        Scope::Caller { .. } | Scope::Own { .. } => false,
    }
}

fn shown(agent: &Agent) -> Shown<'_> {
    let remote = agent.link.reach().map(|reach| Remote {
        address: reach.address,
        binding: reach.binding,
        version: reach.version,
        breaker: reach.breaker.name(),
        failures: reach.failures,
        problem: reach.problem,
    });
    Shown { name: &agent.name, description: &agent.description, remote }
}
