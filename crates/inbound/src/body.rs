//! Request bodies, read within their limit and checked for depth and type.

use axum::body::Body;
use bytes::Bytes;
use flotilla_core::limits::Limits;
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::decode;
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http_body_util::{BodyExt as _, Limited};
use std::time::Duration;

/// How long a refused caller may take to finish a body nobody reads, and how long it may pause.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_secs(1);

/// A body of JSON, not too large and not nested too deep.
pub async fn read(headers: &HeaderMap, body: &mut Body, limits: &Limits) -> Result<Bytes, Refusal> {
    let bytes = read_any(headers, body, limits).await?;
    decode::check_depth(&bytes, limits.json_depth)?;
    Ok(bytes)
}

/// The whole body, or a refusal as soon as it is known to be too large.
pub async fn read_any(headers: &HeaderMap, body: &mut Body, limits: &Limits) -> Result<Bytes, Refusal> {
    let declared = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if declared.is_some_and(|length| length > limits.body) {
        return Err(too_large(limits.body));
    }
    match Limited::new(body, limits.body).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(too_large(limits.body)),
        Err(error) => {
            let text = format!("The request's body could not be read: {error}.");
            Err(Refusal::new(Reason::InvalidRequest, text))
        }
    }
}

/// Takes what is left of a body that nobody will read: an answer sent before it would be lost with the connection.
/// Says whether the connection can go on.
pub async fn discard(mut body: Body, limits: &Limits) -> bool {
    let mut left = limits.body;
    let drained = async {
        loop {
            let frame = match tokio::time::timeout(PAUSE, body.frame()).await {
                Ok(Some(Ok(frame))) => frame,
                Ok(None) => return true,
                Ok(Some(Err(_))) | Err(_) => return false,
            };
            let size = frame.data_ref().map_or(0, Bytes::len);
            if size > left {
                return false;
            }
            left -= size;
        }
    };
    tokio::time::timeout(PATIENCE, drained).await.unwrap_or(false)
}

fn too_large(limit: usize) -> Refusal {
    let text = format!("The body is larger than {limit} bytes. Send large files as a url part instead.");
    Refusal::new(Reason::PayloadTooLarge, text).fact("limitBytes", limit.to_string())
}

/// JSON under either of its names; nothing said at all is taken as JSON.
pub fn check_type(headers: &HeaderMap) -> Result<(), Refusal> {
    let Some(value) = headers.get(CONTENT_TYPE) else { return Ok(()) };
    let given = value.to_str().unwrap_or("an unreadable one");
    let bare = given.split(';').next().unwrap_or_default().trim();
    if bare.eq_ignore_ascii_case("application/json") || bare.eq_ignore_ascii_case("application/a2a+json") {
        return Ok(());
    }
    let text = format!("The body's media type is {given}; send application/json or application/a2a+json.");
    Err(Refusal::new(Reason::MediaTypeNotSupported, text).fact("mediaType", given))
}
