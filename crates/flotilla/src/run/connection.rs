//! One connection: served in the version its client speaks, and let go when its client is silent or the hub stops.

use super::accept::Place;
use super::activity::{Activity, Held, Silence, Times, Watched};
use super::secure::{Socket, Speaks};
use axum::body::Body;
use flotilla_core::limits::{Limit, count_over};
use flotilla_inbound::{App, Peer};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How often a quiet HTTP/2 connection is asked whether it is still there.
const PING: Duration = Duration::from_secs(30);
/// How much longer than allowed a head may be and still be refused in the form of its binding.
const HEAD_MARGIN: usize = 16 * 1024;
/// How long a client may take to see that it was told to go.
const PARTING: Duration = Duration::from_secs(5);

/// What a connection is let in with.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    pub times: Times,
    pub header_bytes: usize,
    pub peer: Peer,
    /// The limit of connections, if this one is beyond it: its requests are turned away.
    pub crowded: Option<usize>,
}

/// Serves until the client or the hub goes.
pub async fn serve(stream: Socket, app: Arc<App>, terms: Terms, mut stop: watch::Receiver<bool>, place: Place) {
    let activity = Activity::new();
    let speaks = tokio::select! {
        speaks = stream.speaks(terms.times.head) => speaks,
        // Who has not said anything yet need not be waited for.
        _ = stop.wait_for(|stop| *stop) => None,
    };
    let Some(speaks) = speaks else { return };
    let service = {
        let activity = Arc::clone(&activity);
        service_fn(move |request: Request<Incoming>| {
            let (app, busy) = (Arc::clone(&app), Activity::begin(&activity));
            // In a box of its own, which is given back when the answer begins: a stream is quiet for long.
            Box::pin(async move {
                let mut request = request.map(Body::new);
                request.extensions_mut().insert(terms.peer);
                let answer = match terms.crowded {
                    None => flotilla_inbound::serve(app, request).await,
                    Some(most) => Box::pin(flotilla_inbound::turn_away(app, request, most)).await,
                };
                Ok::<Response<Held>, Infallible>(answer.map(|body| Held::new(body, busy)))
            })
        })
    };
    // In a box of its own, so that a connection takes the room of the version it speaks, and only once.
    let most = terms.header_bytes + HEAD_MARGIN;
    let ended = match speaks {
        Speaks::Http1 => {
            // What the connection becomes keeps its place, and is waited for like one.
            let held = (place, stop.clone());
            let io = TokioIo::new(Watched::new(stream, Arc::clone(&activity), true).holding(held));
            let connection = http1::Builder::new()
                .header_read_timeout(None)
                .max_header_size(most)
                .max_buf_size(most)
                .keep_alive(terms.crowded.is_none())
                .serve_connection(io, service);
            let connection = Box::pin(connection.with_upgrades());
            drive(connection, http1::UpgradeableConnection::graceful_shutdown, &activity, terms.times, stop).await
        }
        Speaks::Http2 => {
            // Frames come without a request too, so only requests count as activity.
            activity.expect_no_head();
            let io = TokioIo::new(Watched::new(stream, Arc::clone(&activity), false).holding((place, stop.clone())));
            let connection = Box::pin(
                http2::Builder::new(TokioExecutor::new())
                    .timer(TokioTimer::new())
                    .keep_alive_interval(Some(PING))
                    .max_header_list_size(u32::try_from(most).unwrap_or(u32::MAX))
                    .serve_connection(io, service),
            );
            drive(connection, http2::Connection::graceful_shutdown, &activity, terms.times, stop).await
        }
    };
    if let Err(error) = ended {
        if error.is_parse_too_large() {
            count_over(Limit::HeaderBytes.name(), "connection");
        }
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Runs a connection to its end, and brings that about when the client is silent for too long or the hub stops.
async fn drive<C: Future<Output = hyper::Result<()>>>(
    mut connection: Pin<Box<C>>,
    part: impl Fn(Pin<&mut C>),
    activity: &Activity,
    times: Times,
    mut stop: watch::Receiver<bool>,
) -> hyper::Result<()> {
    let silence = {
        let mut silent = pin!(activity.silent(times));
        let mut stopped = pin!(stop.wait_for(|stop| *stop));
        let mut stopping = false;
        loop {
            tokio::select! {
                biased;
                ended = connection.as_mut() => return ended,
                silence = silent.as_mut() => break silence,
                // The sender is gone only when the hub is.
                _ = stopped.as_mut(), if !stopping => {
                    stopping = true;
                    part(connection.as_mut());
                }
            }
        }
    };
    let limit = match silence {
        Silence::Idle => Limit::IdleTime,
        Silence::Head => Limit::HeadTime,
    };
    count_over(limit.name(), "connection");
    if silence == Silence::Head {
        return Ok(());
    }
    // A request may be on its way: whoever sent it is told that it was not taken.
    part(connection.as_mut());
    loop {
        match tokio::time::timeout(PARTING, connection.as_mut()).await {
            Ok(ended) => return ended,
            Err(_) if activity.is_active(PARTING) => {}
            Err(_) => return Ok(()),
        }
    }
}
