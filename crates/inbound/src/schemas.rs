//! The published JSON Schemas of the fleet handshake.

use crate::answer::with_type;
use axum::body::Body;
use flotilla_protocol::fleet::Kind;
use http::header::CACHE_CONTROL;
use http::{HeaderValue, Response, StatusCode};

/// `/schemas/fleet/{name}.json`; none if there is no such schema.
pub fn fleet(file: &str) -> Option<Response<Body>> {
    let kind = Kind::from_slug(file.strip_suffix(".json")?)?;
    let body = serde_json::to_vec_pretty(&kind.schema()).ok()?;
    let mut response = with_type(StatusCode::OK, HeaderValue::from_static("application/schema+json"), body);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    Some(response)
}
