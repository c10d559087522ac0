//! Responses: the headers every binding sets, and the HTTP side of a refusal.

use crate::app::App;
use crate::body;
use crate::dialect::Dialect;
use crate::parameters::VERSION;
use axum::body::Body;
use bytes::Bytes;
use flotilla_protocol::a2a::error::{Reason, Refusal};
use http::header::{ACCEPT, ALLOW, CONNECTION, CONTENT_TYPE, EXPECT, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body::{Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};

pub const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub const A2A_JSON: HeaderValue = HeaderValue::from_static("application/a2a+json");

/// The media type to answer HTTP+JSON with: A2A's own (spec 11.1), unless the caller only speaks of plain JSON.
pub fn negotiated(asked: &HeaderMap) -> HeaderValue {
    let names = |header: HeaderName, media_type: &str| {
        let mut values = asked.get_all(header).iter().filter_map(|value| value.to_str().ok());
        values.any(|value| value.to_ascii_lowercase().contains(media_type))
    };
    let own = names(ACCEPT, "application/a2a+json") || names(CONTENT_TYPE, "application/a2a+json");
    let plain = names(ACCEPT, "application/json") || names(CONTENT_TYPE, "application/json");
    if plain && !own { JSON } else { A2A_JSON }
}

pub fn with_type(status: StatusCode, media_type: HeaderValue, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, media_type);
    response
}

/// Adds what every A2A answer says.
pub fn finish(mut response: Response<Body>, dialect: Dialect, extensions: Option<HeaderValue>) -> Response<Body> {
    let headers = response.headers_mut();
    headers.insert(&VERSION, HeaderValue::from_static(dialect.version().name()));
    if let Some(extensions) = extensions {
        if dialect != Dialect::V10 {
            headers.insert("x-a2a-extensions", extensions.clone());
        }
        headers.insert("a2a-extensions", extensions);
    }
    response
}

/// The headers HTTP asks for beside certain refusals.
pub fn refuse(mut response: Response<Body>, dialect: Dialect, refusal: &Refusal) -> Response<Body> {
    let headers = response.headers_mut();
    if refusal.reason == Reason::Unauthenticated {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"flotilla\""));
    }
    if let Some(seconds) = refusal.retry_after {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    finish(response, dialect, None)
}

/// Drops something when a body is written, or nobody wants it any more.
pub fn until_written(body: Body, held: impl Send + Unpin + 'static) -> Body {
    Body::new(Holding { body, _held: held })
}

struct Holding<T> {
    body: Body,
    _held: T,
}

impl<T: Unpin> http_body::Body for Holding<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Answers once the request's body is out of the way, or says that the connection ends.
pub async fn after(app: &App, asked: &HeaderMap, body: Body, mut response: Response<Body>) -> Response<Body> {
    // Whoever asked whether to send a body is told not to by the answer itself; who was too slow is waited for no more.
    let given_up = response.status() == StatusCode::REQUEST_TIMEOUT;
    if given_up || asked.contains_key(EXPECT) || !body::discard(body, &app.hub.limits()).await {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

pub fn allow(mut response: Response<Body>, methods: &'static str) -> Response<Body> {
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    response
}
