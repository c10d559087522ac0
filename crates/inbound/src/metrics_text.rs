//! `/metrics`: rendered at most once a second for readers without a key, who all get the same bytes.

use crate::answer::with_type;
use crate::app::App;
use crate::shared_text::SharedText;
use crate::{caller, rest};
use axum::body::Body;
use bytes::Bytes;
use flotilla_core::registry::{Registry, Visibility};
use flotilla_core::rights::Right;
use flotilla_protocol::a2a::error::{Reason, Refusal};
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
/// The label that names an agent; only public agents are named to readers without a key.
const AGENT: &str = "agent=\"";

/// Renders `/metrics`.
pub type Render = std::sync::Arc<dyn Fn() -> String + Send + Sync>;

pub struct Metrics {
    render: Render,
    shared: SharedText,
}

impl Metrics {
    pub fn new(render: Render) -> Self {
        Self { render, shared: SharedText::default() }
    }

    /// All there is, as it is now.
    fn whole(&self, app: &App) -> String {
        metrics::gauge!("flotilla_runs_live").set(app.hub.live_runs() as f64);
        metrics::gauge!("flotilla_tasks_in_memory").set(app.hub.live_tasks() as f64);
        metrics::gauge!("flotilla_held_bytes").set(app.hub.held_bytes().all() as f64);
        metrics::gauge!("flotilla_push_configs_active").set(app.hub.hook_count() as f64);
        for (state, count) in app.hub.count_by_liveness() {
            metrics::gauge!("flotilla_agents", "state" => state.name()).set(count as f64);
        }
        for (agent, breaker) in app.hub.breakers() {
            metrics::gauge!("flotilla_remote_breaker", "agent" => agent).set(breaker.level());
        }
        (self.render)()
    }

    /// What readers without a key see.
    fn shared(&self, app: &App) -> Bytes {
        self.shared.get(|| without_private(&self.whole(app), &app.hub.registry()))
    }
}

/// The lines that name no agent, or a public one.
fn without_private(text: &str, registry: &Registry) -> String {
    let is_public = |name: &str| registry.by_name(name).is_some_and(|agent| agent.visibility == Visibility::Public);
    let is_shown = |line: &&str| {
        let named = line.split_once(AGENT).and_then(|(_, rest)| rest.split_once('"'));
        line.starts_with('#') || named.is_none_or(|(name, _)| is_public(name))
    };
    text.lines().filter(is_shown).flat_map(|line| [line, "\n"]).collect()
}

/// On the hub's own port: all to an admin, and what is public to readers without a key, unless a key is asked for.
pub async fn serve(app: &App, request: &Parts) -> Response<Body> {
    let shows_key = !matches!(caller::credential(&request.headers), Ok(None));
    if !shows_key && !app.settings().metrics_need_key {
        return with_type(StatusCode::OK, TEXT, app.metrics.shared(app));
    }
    match caller::identify(app, request).await {
        Ok(caller) if caller.rights.has(Right::Admin) => with_type(StatusCode::OK, TEXT, app.metrics.whole(app)),
        Ok(_) if !app.settings().metrics_need_key => with_type(StatusCode::OK, TEXT, app.metrics.shared(app)),
        Ok(_) => rest::refuse(app, &needs_admin()),
        Err(error) => rest::refuse(app, &app.refusal(error)),
    }
}

/// At an address of its own, which only operators reach.
pub fn serve_operators(app: &App) -> Response<Body> {
    with_type(StatusCode::OK, TEXT, app.metrics.whole(app))
}

fn needs_admin() -> Refusal {
    Refusal::new(Reason::PermissionDenied, "Metrics need a key with the scope admin here. Use the owner's key.")
}
