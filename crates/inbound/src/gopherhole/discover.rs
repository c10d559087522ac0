//! `/api/discover`: where clients of the dialect look for agents over plain HTTP.

use super::catalog;
use crate::answer::{self, JSON, with_type};
use crate::app::App;
use crate::parameters::query;
use crate::{caller, rest, signed};
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

/// Serves what is below `/api/discover`.
pub async fn serve(app: &Arc<App>, path: &[&str], request: Request<Body>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let found = match path {
        [_, id] => one(app, id, &parts).await,
        [what] => all(app, what, &parts).await,
        _ => Err(Fault::new("a path that is not served here").into()),
    };
    let response = match found {
        Ok(found) => with_type(StatusCode::OK, JSON, found.to_string()),
        Err(error) => rest::refuse(app, &app.refusal(error)),
    };
    answer::after(app, &parts.headers, body, response).await
}

async fn all(app: &App, what: &str, request: &Parts) -> Result<Value, Error> {
    let caller = caller::identify(app, request).await?;
    app.hub.count_request(caller.principal)?;
    Ok(match what {
        "featured" => catalog::featured(&caller)?,
        "categories" => catalog::categories(app, &caller)?,
        _ => search(app, &caller, request)?,
    })
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
    let caller = match caller::credential(&request.headers)? {
        Some(_) => caller::identify(app, request).await?,
        None => {
            app.hub.count_request(Caller::anonymous().principal)?;
            Caller::anonymous()
        }
    };
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
