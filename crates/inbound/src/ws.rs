//! `GET /ws`: a connection that stays open, for agents that dial in and for callers (docs/sockets.md). `/gopherhole/ws` is
//! the same for clients of GopherHole.

mod agent;
mod calls;
mod connection;
mod frames;
mod handshake;
mod held;
pub mod lines;
mod metered;
pub mod sittings;
pub mod ticket;
mod upcall;
mod upgrade;
mod worker;

use crate::app::App;
use crate::parameters::query;
use crate::{answer, caller, rest};
use axum::body::Body;
use connection::Connection;
pub use connection::Manner;
use flotilla_core::caller::Caller;
use flotilla_core::error::Error;
use flotilla_core::rights::Right;
use flotilla_protocol::a2a::error::Refusal;
use http::request::Parts;
use http::{HeaderMap, Request, Response};
use std::sync::Arc;
use std::time::Duration;
pub use upgrade::Upgrade;

/// Bounds of a connection that stays open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sockets {
    /// How often a quiet connection is asked whether it is still there.
    pub ping: Duration,
    /// How long it may be silent.
    pub idle: Duration,
    /// Largest frame that is taken, in bytes.
    pub frame: usize,
    /// Frames that may wait to be written.
    pub outgoing: usize,
    /// How long a peer may take nothing of what is written to it.
    pub write_time: Duration,
    /// Requests that are worked on at once.
    pub calls: usize,
    /// How long a ticket is good.
    pub ticket: Duration,
}

impl Default for Sockets {
    fn default() -> Self {
        Self {
            ping: Duration::from_secs(30),
            idle: Duration::from_secs(90),
            frame: 16 * 1024 * 1024,
            outgoing: 64,
            write_time: Duration::from_secs(30),
            calls: 64,
            ticket: Duration::from_secs(30),
        }
    }
}

/// What a peer asks for in the target of its request.
#[derive(Debug, Default)]
struct Wish {
    agent: Option<String>,
    resume: Option<String>,
    ticket: Option<String>,
    /// It wants to call, and be no agent.
    only_calls: bool,
    /// Of a worker: runs it takes at once.
    places: Option<usize>,
}

impl Wish {
    fn of(request: &Parts) -> Result<Self, Refusal> {
        let mut wish = Self::default();
        for (name, value) in query(&request.uri) {
            match name.as_ref() {
                "agent" => wish.agent = Some(value.into_owned()),
                "resume" => wish.resume = Some(value.into_owned()),
                "ticket" => wish.ticket = Some(value.into_owned()),
                "places" => {
                    let wrong = || Refusal::invalid("places", "must be a whole number from 1 on");
                    let places = value.parse().ok().filter(|places| *places > 0);
                    wish.places = Some(places.ok_or_else(wrong)?);
                }
                "role" => wish.only_calls = value == "caller",
                _ => {}
            }
        }
        Ok(wish)
    }
}

/// `plain` is how a peer is spoken to that asks for no subprotocol: it goes by the path.
pub async fn serve(app: &Arc<App>, plain: Manner, request: Request<Body>) -> Response<Body> {
    let (mut parts, body) = request.into_parts();
    let accepted = match handshake::check(&parts, plain) {
        Ok(accepted) => accepted,
        Err(refusal) => {
            let response = handshake::not_upgraded(rest::refuse(app, &refusal));
            return answer::after(app, &parts.headers, body, response).await;
        }
    };
    if let Err(refusal) = handshake::check_bare(&parts) {
        return answer::after(app, &parts.headers, body, rest::refuse(app, &refusal)).await;
    }
    match open(app, &mut parts, accepted.manner).await {
        Ok(connection) => {
            let (upgrade, upgraded) = Upgrade::new();
            tokio::spawn(connection.run(upgraded));
            let mut response = accepted.response();
            response.extensions_mut().insert(upgrade);
            response
        }
        Err(error) => {
            let response = rest::refuse(app, &app.refusal(error));
            answer::after(app, &parts.headers, body, response).await
        }
    }
}

/// Who connects, and as what. Whatever is wrong is told before the connection is made.
async fn open(app: &Arc<App>, parts: &mut Parts, manner: Manner) -> Result<Box<Connection>, Error> {
    let wish = Wish::of(parts)?;
    let mut caller = match &wish.ticket {
        Some(ticket) => {
            let caller = app.tickets.redeem(ticket)?;
            // A ticket is as good as the key it was fetched with.
            app.access.leave(&caller).check()?;
            caller
        }
        None => caller::identify(app, parts).await?,
    };
    let is_agent = !wish.only_calls && (wish.agent.is_some() || caller.rights.names_one(Right::AgentsConnect));
    let agent = if is_agent { Some(app.hub.dial_in(&caller, wish.agent.as_deref()).await?) } else { None };
    let session = match agent {
        Some((agent, terms)) => {
            caller.agent = Some(agent.name.as_str().into());
            let desk = app.hub.roster().desk(agent.id);
            let seal = format!("{} {}", app.hub.store().hub_id(), agent.id.0);
            let (session, resumed) = desk.open(wish.resume.as_deref(), terms, &seal)?;
            match manner {
                Manner::Worker => session.serve_worker(wish.places.unwrap_or(usize::MAX)),
                Manner::Frames | Manner::GopherHole => session.serve_frames(),
                Manner::V10 | Manner::V03 => session.serve_requests(),
            }
            Some(agent::Place { agent, session, resumed })
        }
        None => None,
    };
    Ok(Box::new(Connection::new(app, caller, session, manner, service(parts))))
}

/// The service parameters that hold for every request of the connection which names none itself.
fn service(parts: &Parts) -> (HeaderMap, http::Uri) {
    let kept = ["a2a-version", "a2a-extensions", "x-a2a-extensions"];
    let headers = parts.headers.iter().filter(|(name, _)| kept.contains(&name.as_str()));
    (headers.map(|(name, value)| (name.clone(), value.clone())).collect(), parts.uri.clone())
}

/// The name a peer has on this connection.
fn own_name(caller: &Caller, place: Option<&agent::Place>) -> String {
    place.map_or_else(|| caller.stands_for.to_string(), |place| place.agent.name.clone())
}
