//! Web pages: a page of another origin cannot drive the hub, unless its origin is allowed by name (CORS).

use crate::app::Settings;
use axum::body::Body;
use flotilla_protocol::a2a::error::{Reason, Refusal};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, HOST, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};

static FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const ALLOWED_METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, DELETE");
const ALLOWED_HEADERS: HeaderValue = HeaderValue::from_static(
    "authorization, x-api-key, content-type, accept, a2a-version, a2a-extensions, x-a2a-extensions, \
     last-event-id, idempotency-key",
);
const EXPOSED_HEADERS: HeaderValue =
    HeaderValue::from_static("a2a-version, a2a-extensions, x-a2a-extensions, retry-after, www-authenticate, etag");
/// How long a browser may remember what it was told, in seconds.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// The origin a page of which asks, if it is another one that is allowed.
pub fn origin(settings: &Settings, request: &Request<Body>) -> Result<Option<HeaderValue>, Refusal> {
    let headers = request.headers();
    let Some(origin) = headers.get(ORIGIN) else {
        return if is_from_elsewhere(headers) && !is_visit(request) { Err(refused("another site")) } else { Ok(None) };
    };
    // A browser sends one; of several, whoever looks further might take another.
    if headers.get_all(ORIGIN).iter().count() > 1 {
        return Err(refused("several origins at once"));
    }
    let text = origin.to_str().unwrap_or("unreadable");
    if is_own(settings, request, text) {
        return Ok(None);
    }
    if settings.allowed_origins.iter().any(|allowed| allowed == text) {
        return Ok(Some(origin.clone()));
    }
    Err(refused(text))
}

/// The hub's own pages. The host was looked at before: it is no name a stranger could have given to this address.
fn is_own(settings: &Settings, request: &Request<Body>, origin: &str) -> bool {
    let Some((scheme, authority)) = origin.split_once("://") else { return false };
    let asked = request.uri().authority().map(http::uri::Authority::as_str);
    let asked = asked.or_else(|| request.headers().get(HOST)?.to_str().ok());
    let public = settings.public_url.split('/').take(3).collect::<Vec<_>>().join("/");
    let served = settings.schemes.iter().any(|served| served.eq_ignore_ascii_case(scheme));
    served && asked.is_some_and(|asked| asked.eq_ignore_ascii_case(authority)) || origin.eq_ignore_ascii_case(&public)
}

/// Browsers leave the origin out of some requests, such as that of an image, and say this instead.
fn is_from_elsewhere(headers: &HeaderMap) -> bool {
    headers.get(&FETCH_SITE).is_some_and(|site| site == "cross-site" || site == "same-site")
}

/// A person follows a link: nothing is changed by it, and the page with the link does not see what came. What a page puts
/// into a frame of its own is no visit.
fn is_visit(request: &Request<Body>) -> bool {
    let says = |name, value| request.headers().get(name).is_some_and(|said| said == value);
    let navigates = says("sec-fetch-mode", "navigate") && says("sec-fetch-dest", "document");
    navigates && matches!(*request.method(), Method::GET | Method::HEAD)
}

fn refused(origin: &str) -> Refusal {
    let shown: String = origin.chars().take(200).collect();
    let text = format!(
        "Web pages of {shown} may not use this hub. Its owner can allow an origin by name in hub.allowed_origins; other \
         programs should not send an Origin header."
    );
    Refusal::new(Reason::PermissionDenied, text).fact("header", "Origin")
}

/// A browser asks before it lets a page ask.
pub fn is_preflight(request: &Request<Body>) -> bool {
    *request.method() == Method::OPTIONS && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

pub fn preflight() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, ALLOWED_METHODS);
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED_HEADERS);
    headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    response
}

/// Lets the page see the answer. There are no cookies, so credentials in the browser's sense are not allowed.
pub fn allow(settings: &Settings, mut response: Response<Body>, origin: Option<HeaderValue>) -> Response<Body> {
    let headers = response.headers_mut();
    if !settings.allowed_origins.is_empty() {
        // Whoever caches an answer must not give it to a page of another origin.
        headers.append(VARY, HeaderValue::from_static("Origin"));
    }
    if let Some(origin) = origin {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
    }
    response
}
