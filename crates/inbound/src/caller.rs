//! The credential of a request, wherever it is shown.

use crate::address;
use crate::app::App;
use flotilla_core::access::Shown;
use flotilla_core::caller::Caller;
use flotilla_core::error::Error;
use flotilla_protocol::a2a::error::{Reason, Refusal};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use http::request::Parts;

/// Who is asking: by `Authorization: Bearer` or `X-API-Key`, and nothing else.
pub async fn identify(app: &App, request: &Parts) -> Result<Caller, Error> {
    let key = credential(&request.headers)?;
    let from = address::of(request, &app.settings().trusted_proxies);
    let most_wrong = app.hub.limits().wrong_keys_per_address;
    let caller = app.access.caller(Shown { key, from, most_wrong }).await?;
    app.hub.count_request(caller.principal)?;
    Ok(caller)
}

/// The key as it is shown, unchecked.
pub fn credential(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    let unreadable = || Refusal::new(Reason::Unauthenticated, "The credential holds characters no key has.");
    if let Some(value) = headers.get(AUTHORIZATION) {
        let text = value.to_str().map_err(|_| unreadable())?;
        let (scheme, credential) = text.split_once(' ').unwrap_or((text, ""));
        if !scheme.eq_ignore_ascii_case("bearer") {
            let text = "The Authorization header must be 'Bearer' followed by a key.";
            return Err(Refusal::new(Reason::Unauthenticated, text));
        }
        return Ok(Some(credential.trim()));
    }
    headers.get("x-api-key").map(|value| value.to_str().map_err(|_| unreadable())).transpose()
}
