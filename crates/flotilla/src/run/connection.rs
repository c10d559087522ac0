//! One connection: served in the version its client speaks, and let go when its client is silent or the hub stops.

use super::accept::Place;
use super::activity::{Activity, Busy, Held, Silence, Times, Watched};
use super::rush::{Busyness, is_calm};
use super::secure::{Socket, Speaks};
use super::{http1, http2};
use axum::body::Body;
use flotilla_core::limits::{Limit, count_over};
use flotilla_core::steady::steady_while;
use flotilla_inbound::{App, ClientConnection, Peer};
use hyper::{Request, Response};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// How much longer than allowed a head may be and still be refused in the form of its binding.
const HEAD_MARGIN: usize = 16 * 1024;
/// How long a client may take to see that it was told to go;
const PARTING: Duration = Duration::from_secs(5);
/// and one that owes its first head, where the version has words for it.
pub const FAREWELL: Duration = Duration::from_secs(1);

/// What a connection is let in with.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    pub opened: Instant,
    pub times: Times,
    pub header_bytes: usize,
    pub peer: Peer,
    /// The limit of connections, if this one is beyond it: its requests are turned away.
    pub crowded: Option<usize>,
}

/// Serves until the client or the hub goes.
pub async fn serve(stream: Socket, app: Arc<App>, terms: Terms, mut stop: watch::Receiver<bool>, place: Place) {
    let activity = Activity::since(terms.opened);
    let speaks = tokio::select! {
        speaks = stream.speaks(terms.opened + terms.times.head) => speaks,
        // Who has not said anything yet need not be waited for.
        _ = stop.wait_for(|stop| *stop) => None,
    };
    let Some(speaks) = speaks else { return };
    let is_http1 = matches!(speaks, Speaks::Http1);
    // What the connection becomes keeps its place, and is waited for like one.
    let io = Watched::new(stream, Arc::clone(&activity), is_http1).holding((place, stop.clone()));
    let served = Served { app, terms, activity, busyness: Arc::default(), client: ClientConnection::default() };
    let ended = match speaks {
        Speaks::Http1 => steady_while(http1::serve(io, served, stop), is_calm).await,
        Speaks::Http2 => http2::serve(io, served, stop).await,
    };
    if let Err(error) = ended {
        if error.is_parse_too_large() {
            count_over(Limit::HeaderBytes.name(), "connection");
        }
        tracing::debug!(%error, "a connection ended early");
    }
}

/// What the requests of a connection are served with.
#[derive(Clone)]
pub struct Served {
    app: Arc<App>,
    pub terms: Terms,
    pub activity: Arc<Activity>,
    busyness: Arc<Busyness>,
    pub client: ClientConnection,
}

impl Served {
    pub fn head_bytes(&self) -> usize {
        self.terms.header_bytes + HEAD_MARGIN
    }

    /// How long a connection may be quiet before it is asked whether it is still there.
    pub fn keep_alive(&self) -> Duration {
        self.app.settings().keep_alive
    }

    /// A request under way, to be answered.
    pub fn begin(&self) -> Begun {
        self.busyness.request();
        let (app, client) = (Arc::clone(&self.app), self.client.clone());
        Begun { app, terms: self.terms, busy: Activity::begin(&self.activity), client }
    }
}

pub struct Begun {
    app: Arc<App>,
    terms: Terms,
    busy: Busy,
    client: ClientConnection,
}

impl Begun {
    pub async fn answer(self, mut request: Request<Body>) -> Response<Held> {
        request.extensions_mut().insert(self.terms.peer);
        request.extensions_mut().insert(self.client);
        let answer = match self.terms.crowded {
            None => flotilla_inbound::serve(self.app, request).await,
            Some(most) => Box::pin(flotilla_inbound::turn_away(self.app, request, most)).await,
        };
        answer.map(|body| Held::new(body, self.busy))
    }
}

/// Runs a connection to its end, and brings that about when the client is silent for too long or the hub stops.
/// `farewell` is for a client that owes a head; without one it is not told to go.
/// Whether it ended by itself, and is not just to be dropped.
pub async fn drive<C: Future<Output = hyper::Result<()>>>(
    mut connection: Pin<&mut C>,
    part: impl Fn(Pin<&mut C>),
    served: &Served,
    farewell: Option<Duration>,
    mut stop: watch::Receiver<bool>,
) -> hyper::Result<bool> {
    let (activity, times) = (&*served.activity, served.terms.times);
    let silence = {
        let mut silent = pin!(activity.silent(times));
        let mut stopped = pin!(stop.wait_for(|stop| *stop));
        let mut refused = pin!(served.client.is_refused());
        let mut stopping = false;
        loop {
            tokio::select! {
                biased;
                ended = connection.as_mut() => return ended.map(|()| true),
                silence = silent.as_mut() => break Some(silence),
                () = refused.as_mut() => break None,
                // The sender is gone only when the hub is.
                _ = stopped.as_mut(), if !stopping => {
                    stopping = true;
                    part(connection.as_mut());
                }
            }
        }
    };
    let Some(silence) = silence else {
        // Its caller has too many; the refusal is on its way.
        part(connection.as_mut());
        return tokio::time::timeout(FAREWELL, connection).await.unwrap_or(Ok(())).map(|()| false);
    };
    let limit = match silence {
        Silence::Idle => Limit::IdleTime,
        Silence::Head => Limit::HeadTime,
    };
    count_over(limit.name(), "connection");
    let farewell = match (silence, farewell) {
        (Silence::Head, None) => return Ok(false),
        (Silence::Head, farewell) => farewell,
        (Silence::Idle, _) => None,
    };
    // A request may be on its way: whoever sent it is told that it was not taken.
    part(connection.as_mut());
    if let Some(farewell) = farewell {
        match tokio::time::timeout(farewell, connection.as_mut()).await {
            Ok(ended) => return ended.map(|()| true),
            Err(_) if activity.owes_head() => return Ok(false),
            // It came at the last moment, and is answered.
            Err(_) => {}
        }
    }
    loop {
        match tokio::time::timeout(PARTING, connection.as_mut()).await {
            Ok(ended) => return ended.map(|()| true),
            Err(_) if activity.is_active(PARTING) => {}
            Err(_) => return Ok(false),
        }
    }
}
