//! The door: what is looked at before any binding has a say.

use crate::app::App;
use axum::body::Body;
use flotilla_core::limits::Limit;
use flotilla_protocol::a2a::error::{Reason, Refusal};
use http::header::HOST;
use http::{Request, Version};

/// Refuses what no binding should have to look at.
pub fn check(app: &App, request: &Request<Body>) -> Result<(), Refusal> {
    check_host(request)?;
    let most = app.hub.limits().header_bytes;
    let size = head_size(request);
    if size <= most {
        return Ok(());
    }
    let text =
        format!("The request's head holds {size} bytes; at most {most} are allowed. Send fewer or shorter headers.");
    Err(Limit::HeaderBytes.refuse(most, text))
}

/// HTTP/1.1 asks for exactly one (RFC 9112, 3.2); HTTP/2 has it in the target.
fn check_host(request: &Request<Body>) -> Result<(), Refusal> {
    if request.version() != Version::HTTP_11 || request.headers().get_all(HOST).iter().count() == 1 {
        return Ok(());
    }
    Err(Refusal::new(Reason::HostRequired, "An HTTP/1.1 request must have one Host header. Send the hub's name in it."))
}

/// The target, and the names and values of all fields.
fn head_size(request: &Request<Body>) -> usize {
    let uri = request.uri();
    let target = uri.path().len() + uri.query().map_or(0, |query| query.len() + 1);
    let fields = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len());
    target + fields.sum::<usize>()
}

/// There is no place for this connection.
pub fn crowded(most: usize) -> Refusal {
    let text = format!("The hub serves as many connections as it may ({most}). Try again in a moment.");
    Limit::Connections.refuse(most, text)
}
