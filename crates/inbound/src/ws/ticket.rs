//! Tickets: a browser cannot show a key when it connects, so it fetches one of these first and shows that, once.

use crate::answer::{self, JSON, with_type};
use crate::app::App;
use crate::{caller, rest};
use axum::body::Body;
use flotilla_core::caller::Caller;
use flotilla_core::error::{Error, Fault};
use flotilla_core::key::sha256;
use flotilla_core::ports::Digest;
use flotilla_protocol::a2a::error::{Reason, Refusal};
use http::header::CACHE_CONTROL;
use http::{HeaderValue, Request, Response, StatusCode};
use std::collections::HashMap;
use std::sync::Mutex;
use tokio::time::Instant;

/// Tickets that are out at once. They are short-lived; more of them are a mistake.
const MOST: usize = 10_000;

/// Tickets that were given and not shown yet, by their hashes.
#[derive(Default)]
pub struct Tickets(Mutex<HashMap<Digest, (Caller, Instant)>>);

impl Tickets {
    fn issue(&self, caller: Caller, until: Instant) -> Result<String, Error> {
        let mut bits = [0u8; 32];
        getrandom::fill(&mut bits).map_err(|error| Fault::new(format!("random numbers: {error}")))?;
        let ticket: String = bits.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut tickets = self.0.lock().expect("no panic while holding the tickets");
        let now = Instant::now();
        tickets.retain(|_, (_, until)| *until > now);
        if tickets.len() >= MOST {
            let text = format!("There are as many tickets as may be ({MOST}). Try again in a moment.");
            return Err(Refusal::new(Reason::ResourceExhausted, text).into());
        }
        tickets.insert(sha256(ticket.as_bytes()), (caller, until));
        Ok(ticket)
    }

    /// Whose ticket it is; it is good no more.
    pub fn redeem(&self, ticket: &str) -> Result<Caller, Refusal> {
        let mut tickets = self.0.lock().expect("no panic while holding the tickets");
        let known = tickets.remove(&sha256(ticket.as_bytes())).filter(|(_, until)| *until > Instant::now());
        known.map(|(caller, _)| caller).ok_or_else(|| {
            let text = "The ticket is not valid: it was used, has expired, or is of another hub. Fetch a new one with \
                        POST /api/ws-ticket.";
            Refusal::new(Reason::Unauthenticated, text)
        })
    }
}

/// `POST /api/ws-ticket`: for whoever shows a key.
pub async fn serve(app: &App, request: Request<Body>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let response = match issue(app, &parts).await {
        Ok(response) => response,
        Err(error) => rest::refuse(app, &app.refusal(error)),
    };
    answer::after(app, &parts.headers, body, response).await
}

async fn issue(app: &App, request: &http::request::Parts) -> Result<Response<Body>, Error> {
    let caller = caller::identify(app, request).await?;
    let lifetime = app.settings().sockets.ticket;
    let ticket = app.tickets.issue(caller, Instant::now() + lifetime)?;
    let body = serde_json::json!({"ticket": ticket, "expiresIn": lifetime.as_secs()}).to_string();
    let mut response = with_type(StatusCode::CREATED, JSON, body);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}
