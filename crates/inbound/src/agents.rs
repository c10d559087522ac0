//! The registry over HTTP: agents are found, shown, added, changed, removed, checked and looked for.

mod query;
mod shown;

use crate::answer::{self, JSON, with_type};
use crate::app::App;
use crate::{body, caller, rest};
use axum::body::Body;
use flotilla_core::caller::Caller;
use flotilla_core::error::{Error, Fault};
use flotilla_core::hub::Changed;
use flotilla_core::ports::{Asked, Discovered};
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::decode::message;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use shown::shown;
pub(crate) use shown::signature_of;
use std::sync::Arc;

/// What `POST /api/agents/discover` takes.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Wanted {
    url: String,
    #[serde(default)]
    auth: Option<Value>,
    #[serde(default)]
    card_keys: Vec<String>,
    /// The name to add the agent under.
    #[serde(default)]
    register: Option<String>,
    /// More settings of the agent that is added.
    #[serde(default)]
    settings: Map<String, Value>,
}

/// Serves what is below `/api/agents`; the verbs are checked already.
pub async fn serve(app: &Arc<App>, rest: &[&str], request: Request<Body>) -> Response<Body> {
    let (parts, mut body) = request.into_parts();
    let answered = answer(app, rest, &parts, &mut body).await;
    let response = answered.unwrap_or_else(|error| rest::refuse(app, &app.refusal(error)));
    answer::after(app, &parts.headers, body, response).await
}

async fn answer(app: &Arc<App>, rest: &[&str], request: &Parts, body: &mut Body) -> Result<Response<Body>, Error> {
    let caller = caller::identify(app, request).await?;
    match (&request.method, rest) {
        (&Method::POST, []) => {
            query::check(&request.uri, &[])?;
            let (name, settings) = named(&read(app, request, body).await?)?;
            let agent = app.hub.add_agent(&caller, &name, &settings, false).await?;
            encode(StatusCode::CREATED, &shown(app, &caller, &agent))
        }
        (&Method::POST, ["discover"]) => {
            query::check(&request.uri, &[])?;
            let wanted: Wanted = message(&read(app, request, body).await?)?;
            discover(app, &caller, wanted).await
        }
        (&Method::POST, [name, ..]) => {
            query::check(&request.uri, &[])?;
            app.hub.check_agent(&caller, name).await?;
            let agent = app.hub.see_agent(&caller, name)?;
            encode(StatusCode::OK, &shown(app, &caller, &agent))
        }
        (verb @ (&Method::PUT | &Method::PATCH), [name, ..]) => {
            query::check(&request.uri, &[])?;
            let bytes = read(app, request, body).await?;
            let settings: Map<String, Value> = message(&bytes)?;
            let text = Value::Object(settings).to_string();
            let changed = if *verb == Method::PUT { Changed::Whole(&text) } else { Changed::Some(&text) };
            let agent = app.hub.change_agent(&caller, name, changed).await?;
            encode(StatusCode::OK, &shown(app, &caller, &agent))
        }
        (&Method::DELETE, [name, ..]) => {
            let force = query::flag(&request.uri, "force")?;
            app.hub.remove_agent(&caller, name, force).await?;
            Ok(with_type(StatusCode::NO_CONTENT, JSON, Body::empty()))
        }
        (_, [name, ..]) => {
            query::check(&request.uri, &[])?;
            let agent = app.hub.see_agent(&caller, name)?;
            encode(StatusCode::OK, &shown(app, &caller, &agent))
        }
        (_, []) => list(app, &caller, request),
    }
}

fn list(app: &Arc<App>, caller: &Caller, request: &Parts) -> Result<Response<Body>, Error> {
    let most = usize::try_from(app.hub.limits().page).unwrap_or(1);
    let search = query::search(&request.uri, most)?;
    let found = app.hub.find_agents(caller, &search)?;
    let agents: Vec<_> = found.agents.iter().map(|agent| shown(app, caller, agent)).collect();
    let mut page = json!({ "agents": agents, "totalSize": found.total });
    if let Some(next) = found.next {
        page["nextPageToken"] = next.into();
    }
    encode(StatusCode::OK, &page)
}

/// Looks, and adds what is found if that is wanted.
async fn discover(app: &Arc<App>, caller: &Caller, wanted: Wanted) -> Result<Response<Body>, Error> {
    let auth = wanted.auth.as_ref().map(Value::to_string);
    let settings = (!wanted.settings.is_empty()).then(|| Value::Object(wanted.settings.clone()).to_string());
    let asked = Asked { url: wanted.url, auth, pins: wanted.card_keys.clone(), settings };
    let Discovered { report, settings, verified } = app.hub.discover(caller, asked).await?;
    let encoding = |error: serde_json::Error| Fault::new(format!("reading a report: {error}"));
    let mut report: Value = serde_json::from_str(&report).map_err(encoding)?;
    let Some(name) = wanted.register else { return encode(StatusCode::OK, &report) };
    let Some(found) = settings else { return Err(unusable(&report).into()) };
    let mut settings: Map<String, Value> = serde_json::from_str(&found).map_err(encoding)?;
    // What was found says nothing of a card elsewhere, or of other keys.
    let others = ["url", "card", "cardKeys", "card_keys"].iter().any(|name| wanted.settings.contains_key(*name));
    settings.extend(wanted.settings);
    if let Some(auth) = wanted.auth {
        settings.insert("auth".into(), auth);
    }
    if !wanted.card_keys.is_empty() {
        settings.insert("cardKeys".into(), wanted.card_keys.into());
    }
    let agent = app.hub.add_agent(caller, &name, &Value::Object(settings).to_string(), verified && !others).await?;
    report["agent"] = shown(app, caller, &agent);
    encode(StatusCode::CREATED, &report)
}

fn unusable(report: &Value) -> Refusal {
    let problem = report["problem"].as_str().unwrap_or("it cannot be called");
    let tried = report["tried"].as_array().into_iter().flatten().map(|tried| {
        let word = |name: &str| tried[name].as_str().unwrap_or_default();
        format!("{}: {}", word("address"), word("problem"))
    });
    let tried: Vec<String> = tried.collect();
    let tried = if tried.is_empty() { String::new() } else { format!(" ({})", tried.join("; ")) };
    Refusal::new(Reason::InvalidParams, format!("The agent is not added: {problem}{tried}."))
}

/// The name of a new agent, and all else that is said of it.
fn named(bytes: &[u8]) -> Result<(String, String), Refusal> {
    let mut said: Map<String, Value> = message(bytes)?;
    match said.remove("name") {
        Some(Value::String(name)) => Ok((name, Value::Object(said).to_string())),
        Some(_) => Err(Refusal::invalid("name", "must be a text")),
        None => Err(Refusal::invalid("name", "is missing: what the agent is called at this hub")),
    }
}

async fn read(app: &App, request: &Parts, body: &mut Body) -> Result<bytes::Bytes, Refusal> {
    let limits = app.hub.limits();
    let bytes = body::read(request, body, &limits).await?;
    body::check_depth(&bytes, &limits, 0)?;
    match request.method {
        Method::PATCH => body::check_patch_type(&request.headers)?,
        _ => body::check_type(&request.headers)?,
    }
    Ok(bytes)
}

fn encode<T: Serialize>(status: StatusCode, value: &T) -> Result<Response<Body>, Error> {
    let body = serde_json::to_vec(value).map_err(|error| Fault::new(format!("encoding agents: {error}")))?;
    Ok(with_type(status, JSON, body))
}
