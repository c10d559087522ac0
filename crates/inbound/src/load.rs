//! What a request costs the hub while it is under way: the bytes it holds, and its connection's place.

use crate::app::App;
use crate::{address, door};
use axum::body::Body;
use bytes::Bytes;
use flotilla_core::held_bytes::{Account, Held, HeldBytes};
use flotilla_core::hub::{Hub, Place};
use flotilla_core::ids::PrincipalId;
use flotilla_protocol::a2a::error::Refusal;
use http::Response;
use http::header::AUTHORIZATION;
use http::request::Parts;
use http_body::{Frame, SizeHint};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};
use tokio::sync::Notify;

/// A request's own structures: its head, its task, its place in its connection.
const REQUEST: usize = 4 * 1024;
/// What a field of a head takes beyond its name and value.
const FIELD: usize = 96;
/// Health checks and refusals are answered whatever else is under way.
const ALWAYS: usize = 1024;

/// The bytes a request holds, from its head until its answer is made.
#[derive(Clone)]
pub struct Load(Arc<Mutex<Held>>);

impl Load {
    /// Begins with the head, for the address the request comes from; `caller::known` moves it to the caller.
    pub fn begin(app: &App, parts: &Parts) -> Result<Self, Refusal> {
        let head = door::head_size(&parts.uri, &parts.headers) + parts.headers.len() * FIELD;
        let from = address::of(parts, &app.settings().trusted_proxies);
        let mut held = app.hub.held_bytes().open(Account::keyless(from));
        // One that shows a key is its caller's as soon as the key is known, and must not wait for others of its address.
        match parts.headers.contains_key(AUTHORIZATION) || parts.headers.contains_key("x-api-key") {
            true => held.grow_anyway(REQUEST + head),
            false => held.grow(REQUEST + head)?,
        }
        Ok(Self(Arc::new(Mutex::new(held))))
    }

    pub fn of(request: &Parts) -> Option<&Self> {
        request.extensions.get()
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn belongs_to(&self, principal: PrincipalId) -> Result<(), Refusal> {
        self.held().move_to(Account::Caller(principal))
    }

    pub fn grow(&self, more: usize) -> Result<(), Refusal> {
        self.held().grow(more)
    }

    /// The request is answered: only its answer is held from now on. An answer there is no room for is refused.
    pub fn answered(&self, response: &Response<Body>) -> Result<(), Refusal> {
        let mut held = self.held();
        held.release();
        match http_body::Body::size_hint(response.body()).exact() {
            Some(size) if size > ALWAYS as u64 => held.grow(usize::try_from(size).unwrap_or(usize::MAX)),
            _ => Ok(()),
        }
    }

    /// Counts the answer's bytes until they are written.
    pub fn count(self, body: Body) -> Body {
        let account = self.held().account();
        let budget = Arc::clone(self.held().budget());
        Body::new(Counted { body, reserved: Some(self), account, budget })
    }
}

/// A body whose bytes are held until they are written. A stream is only asked for more while its caller has room.
struct Counted {
    body: Body,
    /// What is held for a whole answer before its bytes count themselves.
    reserved: Option<Load>,
    account: Account,
    budget: Arc<HeldBytes>,
}

impl http_body::Body for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        let is_whole = this.body.size_hint().exact().is_some();
        if !is_whole && !this.budget.has_room(this.account, context.waker()) {
            return Poll::Pending;
        }
        let frame = Pin::new(&mut this.body).poll_frame(context);
        let Poll::Ready(Some(Ok(frame))) = frame else { return frame };
        this.reserved = None;
        let kept = frame.map_data(|bytes| this.budget.open(this.account).keep(bytes));
        Poll::Ready(Some(Ok(kept)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A client's connection, counted for the first caller who shows a key on it.
#[derive(Clone, Default)]
pub struct ClientConnection(Arc<Counting>);

#[derive(Default)]
struct Counting {
    owner: OnceLock<Place<PrincipalId>>,
    goes: Notify,
}

impl ClientConnection {
    fn belongs_to(&self, hub: &Hub, principal: PrincipalId) -> Result<(), Refusal> {
        if self.0.owner.get().is_none() {
            let place = hub.connection_place(principal).inspect_err(|_| self.0.goes.notify_one())?;
            // Of two requests that come at once, one counts.
            let _ = self.0.owner.set(place);
        }
        Ok(())
    }

    /// Resolves when the connection is to be closed, because its caller has too many.
    pub async fn is_refused(&self) {
        self.0.goes.notified().await;
    }
}

/// The caller of a request is known: what it holds, and its connection, count for the caller.
pub fn belongs_to(app: &App, request: &Parts, principal: PrincipalId) -> Result<(), Refusal> {
    if let Some(connection) = request.extensions.get::<ClientConnection>() {
        connection.belongs_to(&app.hub, principal)?;
    }
    Load::of(request).map_or(Ok(()), |load| load.belongs_to(principal))
}
