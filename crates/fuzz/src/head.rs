//! What stands in a request's head: credentials, cursors, page tokens, deadlines, proxies.

use crate::{headers, lines, text};
use flotilla_core::key::{self, FullName};
use flotilla_core::log::Cursor;
use flotilla_core::{ids, page};
use flotilla_inbound::{Network, Peer, fuzz};
use http::{HeaderMap, HeaderValue, Uri};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// Credentials in their headers, keys and names.
pub fn credential(bytes: &[u8]) {
    let headers = headers(bytes);
    if let Ok(Some(shown)) = fuzz::credential(&headers)
        && key::is_key(shown)
    {
        assert!(shown.len() == 68 && shown.is_ascii());
    }
    let Some(text) = text(bytes) else { return };
    if let Ok(name) = FullName::parse(text) {
        assert_eq!(FullName::parse(&name.to_string()), Ok(name));
    }
    if let Some(id) = ids::TaskId::parse(text) {
        assert_eq!(ids::TaskId::parse(&id.to_string()), Some(id));
    }
}

/// A target on the first line and headers behind it, of which one may say where a stream is taken up.
pub fn cursor(bytes: &[u8]) {
    let ([target], rest) = lines::<1>(bytes);
    if let Ok(uri) = Uri::try_from(target)
        && let Ok(Some(cursor)) = fuzz::cursor(&headers(rest), &uri)
    {
        assert_eq!(Cursor::parse(&cursor.to_string()), Some(cursor));
    }
    if let Some(cursor) = text(bytes).and_then(Cursor::parse) {
        assert_eq!(Cursor::parse(&cursor.to_string()), Some(cursor));
    }
}

/// Where a page goes on.
pub fn page_token(bytes: &[u8]) {
    let Some(token) = text(bytes) else { return };
    if let Ok(Some((at, id))) = page::parse(token) {
        assert_eq!(page::token(at, id), token, "one place has one token");
    }
}

/// `grpc-timeout`.
pub fn grpc_deadline(bytes: &[u8]) {
    let Ok(value) = HeaderValue::from_bytes(bytes) else { return };
    let headers = HeaderMap::from_iter([(http::HeaderName::from_static("grpc-timeout"), value)]);
    if let Ok(Some(deadline)) = fuzz::grpc_deadline(&headers) {
        // Eight digits of hours; whoever adds it to a clock is safe.
        assert!(deadline <= Duration::from_secs(99_999_999 * 3600));
    }
}

/// What proxies say of whom they speak for. Without a trusted one, nothing they say counts.
pub fn proxy(bytes: &[u8]) {
    let peer = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    let mut request = http::Request::new(());
    *request.headers_mut() = headers(bytes);
    request.extensions_mut().insert(Peer(peer));
    let (head, ()) = request.into_parts();
    assert_eq!(fuzz::client_address(&head, &[]), Some(peer));
    let networks: Vec<Network> = ["10.0.0.0/8", "fd00::/8"].iter().filter_map(|text| text.parse().ok()).collect();
    assert!(fuzz::client_address(&head, &networks).is_some(), "everybody comes from somewhere");
}
