//! The door: what is looked at before any binding has a say.

use crate::app::{App, Settings};
use axum::body::Body;
use flotilla_core::limits::Limit;
use flotilla_protocol::a2a::error::{Reason, Refusal};
use http::header::HOST;
use http::uri::Authority;
use http::{HeaderMap, Request, Uri, Version};
use std::net::{IpAddr, SocketAddr};

/// Refuses what no binding should have to look at.
pub fn check(app: &App, settings: &Settings, request: &Request<Body>) -> Result<(), Refusal> {
    check_host(request)?;
    check_name(settings, request)?;
    let most = app.hub.limits().header_bytes;
    let size = head_size(request.uri(), request.headers());
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

/// A web page can give its own name to any address (DNS rebinding) and then ask as if it came from there. Addresses, and
/// names without a dot, nobody outside can give away.
fn check_name(settings: &Settings, request: &Request<Body>) -> Result<(), Refusal> {
    let header = request.headers().get(HOST).and_then(|value| value.to_str().ok());
    let target = request.uri().authority().map(Authority::as_str);
    for asked in header.into_iter().chain(target) {
        if asked.parse::<SocketAddr>().is_ok() {
            continue;
        }
        let host = asked.parse::<Authority>().map(|authority| authority.host().trim_end_matches('.').to_lowercase());
        // A host has no password before it; what stands there could be read as the name.
        if asked.contains('@') || !host.is_ok_and(|host| is_known(settings, &host)) {
            let shown: String = asked.chars().take(200).collect();
            let text = format!(
                "This hub is not known as '{shown}'. Use its address, or name it in hub.public_url or hub.allowed_hosts."
            );
            return Err(Refusal::new(Reason::PermissionDenied, text).fact("header", "Host"));
        }
    }
    Ok(())
}

fn is_known(settings: &Settings, host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let named = |allowed: &String| match allowed.strip_prefix('*') {
        Some(below) => host.ends_with(below),
        None => host == allowed,
    };
    address.is_ok() || !host.contains('.') || host.ends_with(".localhost") || settings.allowed_hosts.iter().any(named)
}

/// The target, and the names and values of all fields.
pub fn head_size(target: &Uri, headers: &HeaderMap) -> usize {
    let target = target.path().len() + target.query().map_or(0, |query| query.len() + 1);
    let fields = headers.iter().map(|(name, value)| name.as_str().len() + value.len());
    target + fields.sum::<usize>()
}

/// There is no place for this connection.
pub fn crowded(most: usize) -> Refusal {
    let text = format!("The hub serves as many connections as it may ({most}). Try again in a moment.");
    Limit::Connections.refuse(most, text)
}
