//! The credential of a request, wherever it is shown.

use crate::address;
use crate::app::App;
use crate::load;
use flotilla_core::access::Shown;
use flotilla_core::caller::Caller;
use flotilla_core::error::Error;
use flotilla_protocol::a2a::error::{Reason, Refusal};
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue};

static API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Who is asking: by `Authorization: Bearer` or `X-API-Key`, and nothing else.
pub async fn identify(app: &App, request: &Parts) -> Result<Caller, Error> {
    let caller = known(app, request).await?;
    app.hub.count_request(caller.principal)?;
    Ok(caller)
}

/// The same, and the request is not counted yet.
pub async fn known(app: &App, request: &Parts) -> Result<Caller, Error> {
    let key = credential(&request.headers)?;
    let from = address::of(request, &app.settings().trusted_proxies);
    let most_wrong = app.hub.limits().wrong_keys_per_address;
    let caller = app.access.caller(Shown { key, from, most_wrong }).await?;
    load::belongs_to(app, request, caller.principal)?;
    Ok(caller)
}

/// The key as it is shown, unchecked.
pub fn credential(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    let bearers = headers.get_all(AUTHORIZATION).iter().map(|value| {
        let text = readable(value)?;
        let (scheme, credential) = text.split_once(' ').unwrap_or((text, ""));
        if !scheme.eq_ignore_ascii_case("bearer") {
            let text = "The Authorization header must be 'Bearer' followed by a key.";
            return Err(Refusal::new(Reason::Unauthenticated, text));
        }
        Ok(credential.trim())
    });
    let mut shown = None;
    for key in bearers.chain(headers.get_all(&API_KEY).iter().map(readable)) {
        let key = key?;
        // Which of them is meant is not for us to say.
        if shown.is_some_and(|other| other != key) {
            let text = "The request shows two different keys. Show one, as Authorization or as X-API-Key.";
            return Err(Refusal::new(Reason::Unauthenticated, text));
        }
        shown = Some(key);
    }
    Ok(shown)
}

fn readable(value: &HeaderValue) -> Result<&str, Refusal> {
    value.to_str().map_err(|_| Refusal::new(Reason::Unauthenticated, "The credential holds characters no key has."))
}
