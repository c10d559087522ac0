//! The catalog of public agents at `/.well-known/ai-catalog.json`, for readers of AI Catalog and ARD.

pub mod ard;
pub(crate) mod request;

use crate::agents::signature_of;
use crate::app::{App, Settings};
use crate::well_known;
use axum::body::Body;
use flotilla_core::registry::{Agent, Liveness, Registry, Visibility};
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderValue, Response, Uri};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

const CATALOG: HeaderValue = HeaderValue::from_static("application/ai-catalog+json");
const CARD: &str = "application/a2a-agent-card+json";
const REGISTRY: &str = "application/ai-registry+json";
/// Agents in the catalog itself; the registry it names has them all.
const MOST: usize = 1_000;
/// Readers recommend as many.
const QUERIES: std::ops::RangeInclusive<usize> = 2..=5;

/// `GET /.well-known/ai-catalog.json`.
pub fn serve(app: &App, request: &Parts) -> Response<Body> {
    let catalog = app.catalog.get(|| whole(app));
    let mut response = well_known::public(app, request, catalog);
    response.headers_mut().insert(CONTENT_TYPE, CATALOG);
    response
}

fn whole(app: &App) -> String {
    let settings = app.settings();
    let registry = app.hub.registry();
    let entries: Vec<Value> = public(app, &registry).take(MOST).map(|agent| entry(app, &settings, agent)).collect();
    let own = [own_registry(&settings)];
    let catalog = json!({
        "specVersion": "1.0",
        "host": {"displayName": settings.name, "identifier": publisher(&settings)},
        "entries": own.into_iter().chain(entries).collect::<Vec<Value>>(),
    });
    catalog.to_string()
}

/// Agents whose cards are for all, but those that are gone.
fn public<'a>(app: &App, registry: &'a Registry) -> impl Iterator<Item = &'a Arc<Agent>> {
    let public = registry.agents().filter(|agent| agent.visibility == Visibility::Public);
    public.filter(move |agent| app.hub.liveness(agent) != Liveness::Gone)
}

/// Whoever publishes the catalog, as a name that can stand in a URN: the host callers reach the hub by.
fn publisher(settings: &Settings) -> String {
    let host = settings.public_url.parse::<Uri>().ok().and_then(|url| url.host().map(str::to_owned));
    let fits = |host: &String| host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'));
    host.filter(fits).unwrap_or_else(|| "localhost".to_owned())
}

fn base(settings: &Settings) -> String {
    format!("{}/api/ard", settings.public_url)
}

/// Where the catalog can be searched.
fn own_registry(settings: &Settings) -> Value {
    json!({
        "identifier": format!("urn:air:{}:registry:hub", publisher(settings)),
        "displayName": format!("{}: agents", settings.name),
        "type": REGISTRY,
        "mediaType": REGISTRY,
        "url": base(settings),
        "description": "Searches the public agents of this hub.",
    })
}

/// An agent as ARD and AI Catalog know it; they name the member for its media type differently.
fn entry(app: &App, settings: &Settings, agent: &Agent) -> Value {
    let tags: BTreeSet<&String> = agent.skills.iter().flat_map(|skill| &skill.tags).collect();
    let capabilities: Vec<&String> = agent.skills.iter().map(|skill| &skill.id).collect();
    let examples = agent.skills.iter().flat_map(|skill| &skill.examples);
    let queries: Vec<&String> = examples.take(*QUERIES.end()).collect();
    let mut entry = json!({
        "identifier": format!("urn:air:{}:agent:{}", publisher(settings), agent.name),
        "displayName": agent.name,
        "type": CARD,
        "mediaType": CARD,
        "url": format!("{}/agents/{}/.well-known/agent-card.json", settings.public_url, agent.name),
        "description": agent.description,
        "version": agent.version,
        "tags": tags,
        "capabilities": capabilities,
        // Whoever chooses among agents must see which of them may not answer.
        "metadata": {"state": app.hub.liveness(agent).name()},
    });
    if let Some(signature) = signature_of(app, agent) {
        entry["metadata"]["signature"] = signature;
    }
    if QUERIES.contains(&queries.len()) {
        entry["representativeQueries"] = json!(queries);
    }
    entry
}
