//! `/api/discover` and `/api/auth/whoami`: where clients of the dialect look for agents, and themselves, over plain HTTP.

use super::{catalog, own_agent};
use crate::answer::{self, JSON, with_type};
use crate::app::App;
use crate::dialect::Dialect;
use crate::meters::Binding;
use crate::parameters::query;
use crate::{caller, signed};
use axum::body::Body;
use flotilla_core::caller::Caller;
use flotilla_core::error::{Error, Fault};
use flotilla_core::registry::{Agent, Visibility};
use flotilla_core::rights::Right;
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::gopherhole::Search;
use http::request::Parts;
use http::{Request, Response, StatusCode, Uri};
use serde_json::{Value, json};
use std::sync::Arc;

/// Serves what is below `/api/discover` and `/api/auth`.
pub async fn serve(app: &Arc<App>, path: &[&str], request: Request<Body>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let found = match path {
        [_, id] => one(app, id, &parts).await,
        [what] => all(app, what, &parts).await,
        _ => Err(Fault::new("a path that is not served here").into()),
    };
    let response = match found {
        Ok(found) => with_type(StatusCode::OK, JSON, found.to_string()),
        Err(error) => refuse(app, &app.refusal(error), json!({})),
    };
    answer::after(app, &parts.headers, body, response).await
}

/// Its clients show what they find below `error` as it is: there it is a text.
fn refuse(app: &App, refusal: &Refusal, beside: Value) -> Response<Body> {
    app.meters.refused(Binding::Rest, refusal);
    let row = refusal.reason.row();
    let status = StatusCode::from_u16(row.http).unwrap_or(StatusCode::BAD_REQUEST);
    let mut told = beside;
    told["error"] = refusal.message.as_str().into();
    told["status"] = row.grpc.into();
    answer::refuse(with_type(status, JSON, told.to_string()), Dialect::V10, refusal)
}

/// What its clients ask for that is not here.
pub fn not_here(app: &App, path: &[&str]) -> Response<Body> {
    let text = match path {
        [.., "rate"] => "This hub keeps no ratings of agents.",
        ["access", ..] | [.., "request-access"] => {
            "Nobody asks for access here: ask the hub's owner for a key that may call the agent, or to make it public."
        }
        [.., "nearby"] => {
            "This hub does not know where agents are, so it finds none nearby. All agents are at /api/discover/agents."
        }
        _ => "There is nothing here. Agents are at /api/discover/agents.",
    };
    // Its clients read a list here without asking how the request went.
    let beside = if path.ends_with(&["nearby"]) { json!({"agents": [], "count": 0}) } else { json!({}) };
    refuse(app, &Refusal::new(Reason::MethodNotFound, text), beside)
}

async fn all(app: &App, what: &str, request: &Parts) -> Result<Value, Error> {
    Ok(match what {
        "featured" => catalog::featured(&looking(app, request).await?)?,
        "whoami" => whoami(app, &caller::identify(app, request).await?),
        "categories" => catalog::categories(app, &looking(app, request).await?)?,
        _ => search(app, &caller::identify(app, request).await?, request)?,
    })
}

/// What the hub knows of whoever shows a key: its name, what it is good for, and the agent it connects as.
fn whoami(app: &App, caller: &Caller) -> Value {
    let hub = &app.settings().name;
    let agent = own_agent(app, caller).map(|agent| agent.name.clone());
    let kind = if caller.is_anonymous() { "anonymous" } else { "api_key" };
    json!({
        "type": kind,
        "tenant": {"id": hub, "name": hub, "slug": ""},
        "apiKey": {"name": caller.name, "agentId": agent, "scopes": caller.rights.names()},
        // Agents have no e-mail here, which is all that would be told of one.
        "agent": null,
    })
}

/// Who looks at what is there for all: its clients show no key there, and whoever shows one sees more.
async fn looking(app: &App, request: &Parts) -> Result<Caller, Error> {
    if caller::credential(&request.headers)?.is_some() {
        return caller::identify(app, request).await;
    }
    app.hub.count_request(Caller::anonymous().principal)?;
    Ok(Caller::anonymous())
}

/// Agents the caller sees; those of its workspace alone where that is asked for.
fn search(app: &App, caller: &Caller, request: &Parts) -> Result<Value, Refusal> {
    let (search, of_workspace) = asked(&request.uri)?;
    if of_workspace { catalog::available(app, caller, &search) } else { catalog::discover(app, caller, &search) }
}

fn asked(uri: &Uri) -> Result<(Search, bool), Refusal> {
    let (mut search, mut of_workspace) = (Search::default(), false);
    for (name, value) in query(uri) {
        let number = || value.parse().map_err(|_| Refusal::invalid(&name, "must be a number"));
        match name.as_ref() {
            "q" => search.query = Some(value.into_owned()),
            "tag" => search.tag = Some(value.into_owned()),
            "skillTag" => search.skill_tag = Some(value.into_owned()),
            "category" => search.category = Some(value.into_owned()),
            "contentMode" => search.content_mode = Some(value.into_owned()),
            "owner" | "organization" => search.owner = Some(value.into_owned()),
            "verified" => search.verified = Some(value == "true"),
            "limit" => search.limit = Some(number()?),
            "offset" => search.offset = Some(number()?),
            "scope" => of_workspace = value == "tenant",
            // There are no ratings to sort by.
            _ => {}
        }
    }
    Ok((search, of_workspace))
}

/// An agent and its card: a public one for all, and any that is listed for whoever shows a key.
async fn one(app: &App, id: &str, request: &Parts) -> Result<Value, Error> {
    let caller = looking(app, request).await?;
    let listed = |agent: &Agent| caller.check(Right::AgentsRead).is_ok() && agent.is_seen_by(&caller);
    let registry = app.hub.registry();
    let agent = registry.by_name(id).filter(|agent| agent.visibility == Visibility::Public || listed(agent));
    let agent = agent.ok_or_else(|| {
        let text = format!("There is no agent '{id}' here for you. Without a key only public ones are shown.");
        Refusal::new(Reason::AgentNotFound, text)
    })?;
    let mut shown = catalog::entry(app, &caller, agent);
    let mut card = serde_json::to_value(signed::public(app, agent, true)).unwrap_or_default();
    card["url"] = shown["url"].clone();
    // Its clients in one language look for these in the agent, those in another beside it.
    shown["agentCard"] = card.clone();
    shown["stats"] = catalog::stats();
    Ok(json!({"agent": shown, "agentCard": card, "stats": catalog::stats(), "reviews": []}))
}
