//! Operations: alive and ready.

use crate::answer::{JSON, with_type};
use crate::app::App;
use axum::body::Body;
use http::{Response, StatusCode};
use serde_json::json;
use std::time::Duration;

/// How long the store may take to answer before the hub is not ready.
const PATIENCE: Duration = Duration::from_secs(2);

/// The process serves requests.
pub fn alive() -> Response<Body> {
    with_type(StatusCode::OK, JSON, r#"{"status":"ok"}"#)
}

/// The process can do its work: the store answers, and it is not on its way out.
pub async fn ready(app: &App) -> Response<Body> {
    match problem(app).await {
        None => with_type(StatusCode::OK, JSON, r#"{"status":"ready"}"#),
        Some(problem) => with_type(
            StatusCode::SERVICE_UNAVAILABLE,
            JSON,
            json!({"status": "not ready", "problem": problem}).to_string(),
        ),
    }
}

/// What keeps the hub from doing its work.
pub async fn problem(app: &App) -> Option<&'static str> {
    if app.hub.is_stopping() {
        return Some("stopping");
    }
    match tokio::time::timeout(PATIENCE, app.hub.store().ping()).await {
        Ok(Ok(())) => None,
        Ok(Err(fault)) => {
            tracing::error!(%fault, "the store does not answer");
            Some("the store does not answer")
        }
        Err(_) => Some("the store is slow to answer"),
    }
}
