//! Keys over HTTP, for whoever administers the hub: made, listed, rotated and revoked, at once.

use crate::answer::{self, JSON, with_type};
use crate::app::App;
use crate::{body, caller, rest, route};
use axum::body::Body;
use flotilla_core::error::{Error, Fault};
use flotilla_core::key::{DEFAULT_WORKSPACE, FullName, KeyRecord};
use flotilla_core::keyring::{self, Made, Order};
use flotilla_core::rights::{Right, Rights};
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::decode::message;
use flotilla_protocol::time::Millis;
use http::header::CACHE_CONTROL;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// What `POST /api/keys` takes.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Wanted {
    name: String,
    #[serde(default)]
    workspace: Option<String>,
    #[serde(default)]
    principal: Option<String>,
    #[serde(default)]
    scopes: Option<Vec<String>>,
    #[serde(default)]
    agents: Option<Vec<String>>,
    #[serde(default)]
    expires_at: Option<Millis>,
}

/// What `POST /api/keys/{key}:rotate` takes.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Rotation {
    overlap_seconds: u64,
    expires_at: Option<Millis>,
}

impl Default for Rotation {
    fn default() -> Self {
        Self { overlap_seconds: 24 * 3600, expires_at: None }
    }
}

/// A key as it is shown: all of it but the key itself.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    workspace: &'a str,
    name: &'a str,
    principal: &'a str,
    scopes: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agents: Option<&'a [String]>,
    created_at: Millis,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Millis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked_at: Option<Millis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replaces: Option<&'a str>,
}

impl<'a> Shown<'a> {
    fn of(key: &'a KeyRecord) -> Self {
        Self {
            workspace: &key.name.workspace,
            name: &key.name.name,
            principal: &key.principal.name,
            scopes: key.rights.names(),
            agents: key.agents.as_deref(),
            created_at: key.created_at,
            expires_at: key.expires_at,
            revoked_at: key.revoked_at,
            replaces: key.replaces.as_deref(),
        }
    }
}

/// Serves what is below `/api/keys`; a key is named by `NAME`, or `WORKSPACE/NAME`.
pub async fn serve(app: &Arc<App>, named: &[&str], request: Request<Body>) -> Response<Body> {
    let (parts, mut body) = request.into_parts();
    let response = match (&parts.method, named) {
        (&Method::GET | &Method::HEAD, []) => list(app, &parts).await,
        (&Method::POST, []) => create(app, &parts, &mut body).await,
        (&Method::POST, [.., last]) if last.ends_with(":rotate") => rotate(app, named, &parts, &mut body).await,
        (&Method::DELETE, [_] | [_, _]) => revoke(app, named, &parts).await,
        (_, []) => Ok(route::wrong_verb(app, &parts, "GET, HEAD, POST")),
        (_, [.., last]) if last.ends_with(":rotate") => Ok(route::wrong_verb(app, &parts, "POST")),
        _ => Ok(route::wrong_verb(app, &parts, "DELETE")),
    };
    let response = response.unwrap_or_else(|error| rest::refuse(app, &app.refusal(error)));
    answer::after(app, &parts.headers, body, response).await
}

async fn administrator(app: &App, request: &Parts) -> Result<(), Error> {
    caller::identify(app, request).await?.check(Right::Admin).map_err(Error::from)
}

async fn read(app: &App, request: &Parts, body: &mut Body) -> Result<bytes::Bytes, Refusal> {
    let limits = app.hub.limits();
    let bytes = body::read(request, body, &limits).await?;
    body::check_depth(&bytes, &limits, 0)?;
    if !bytes.is_empty() {
        body::check_type(&request.headers)?;
    }
    Ok(bytes)
}

async fn list(app: &App, request: &Parts) -> Result<Response<Body>, Error> {
    administrator(app, request).await?;
    let keys = app.hub.store().keys().await?;
    let shown: Vec<Shown<'_>> = keys.iter().map(Shown::of).collect();
    answer(StatusCode::OK, &serde_json::json!({ "keys": shown }))
}

async fn create(app: &App, request: &Parts, body: &mut Body) -> Result<Response<Body>, Error> {
    administrator(app, request).await?;
    let wanted: Wanted = message(&read(app, request, body).await?)?;
    let workspace = wanted.workspace.as_deref().unwrap_or(DEFAULT_WORKSPACE);
    let order = Order {
        name: name(&[workspace, &wanted.name])?,
        principal: wanted.principal,
        rights: match wanted.scopes {
            None => Rights::CALLER,
            Some(scopes) => Rights::of(scopes.iter().map(|scope| right(scope)).collect::<Result<Vec<_>, _>>()?),
        },
        agents: wanted.agents,
        expires_at: wanted.expires_at,
    };
    made(app, keyring::create(&**app.hub.store(), app.now(), order).await?).await
}

async fn rotate(app: &App, named: &[&str], request: &Parts, body: &mut Body) -> Result<Response<Body>, Error> {
    administrator(app, request).await?;
    let bytes = read(app, request, body).await?;
    let rotation: Rotation = if bytes.is_empty() { Rotation::default() } else { message(&bytes)? };
    let mut named: Vec<&str> = named.to_vec();
    if let Some(last) = named.last_mut() {
        *last = last.trim_end_matches(":rotate");
    }
    let overlap = Duration::from_secs(rotation.overlap_seconds);
    let store = &**app.hub.store();
    made(app, keyring::rotate(store, app.now(), &name(&named)?, overlap, rotation.expires_at).await?).await
}

async fn revoke(app: &App, named: &[&str], request: &Parts) -> Result<Response<Body>, Error> {
    administrator(app, request).await?;
    let note = keyring::revoke(&**app.hub.store(), app.now(), &name(named)?).await?;
    app.access.refresh().await?;
    match note {
        Some(note) => answer(StatusCode::OK, &serde_json::json!({ "note": note })),
        None => Ok(with_type(StatusCode::NO_CONTENT, JSON, Body::empty())),
    }
}

fn name(named: &[&str]) -> Result<FullName, Refusal> {
    FullName::parse(&named.join("/")).map_err(|problem| Refusal::invalid("name", problem))
}

fn right(name: &str) -> Result<Right, Refusal> {
    name.parse().map_err(|problem: String| Refusal::invalid("scopes", problem))
}

/// The only answer that holds a key itself: nobody may keep it on the way.
async fn made(app: &App, made: Made) -> Result<Response<Body>, Error> {
    app.access.refresh().await?;
    let mut shown = serde_json::json!({ "key": Shown::of(&made.record), "secret": made.secret });
    if let Some(note) = made.note {
        shown["note"] = note.into();
    }
    answer(StatusCode::CREATED, &shown)
}

fn answer<T: Serialize>(status: StatusCode, value: &T) -> Result<Response<Body>, Error> {
    let body = serde_json::to_vec(value).map_err(|error| Fault::new(format!("encoding keys: {error}")))?;
    let mut response = with_type(status, JSON, body);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}
