//! Connections: accepted up to a limit, and let go in good order when the hub stops.

use super::Running;
use axum::body::Body;
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long a client may take to send its request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
const HEAD_BYTES: usize = 64 * 1024;

/// Serves until `stopped`, then lets what is under way end within the drain time.
pub async fn until(listener: TcpListener, running: &Arc<Running>, stopped: impl Future<Output = ()>) {
    let graceful = GracefulShutdown::new();
    let app = Arc::clone(&running.app);
    let service = service_fn(move |request: Request<Incoming>| {
        let answer = flotilla_inbound::serve(Arc::clone(&app), request.map(Body::new));
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(HEAD_BYTES.max(8192));
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(Some(HEAD_TIMEOUT));
    let places = Arc::new(Semaphore::new(running.config.load().limits.connections));
    tokio::pin!(stopped);
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &places) => accepted,
            () = &mut stopped => break,
        };
        let Some((stream, place)) = accepted else { continue };
        let connection = builder.serve_connection(TokioIo::new(stream), service.clone()).into_owned();
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended early");
            }
            drop(place);
        });
    }
    drop(listener);
    drain(running, graceful).await;
}

/// A place first, then a connection: over the limit, clients wait in the system's queue.
async fn accept(listener: &TcpListener, places: &Arc<Semaphore>) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => {
            // Small answers must not wait for more to say.
            let _ = stream.set_nodelay(true);
            Some((stream, place))
        }
        Err(error) => {
            tracing::warn!(%error, "accepting a connection");
            // Out of file descriptors, most likely: give others time to close theirs.
            tokio::time::sleep(Duration::from_millis(50)).await;
            None
        }
    }
}

async fn drain(running: &Running, graceful: GracefulShutdown) {
    let bound = running.config.load().hub.drain.0;
    tracing::info!(?bound, "stopping: streams are told to come back, runs are given time to end");
    let hub = &running.app.hub;
    hub.stop_streams();
    let all = async {
        tokio::join!(graceful.shutdown(), hub.idle());
    };
    if tokio::time::timeout(bound, all).await.is_err() {
        tracing::warn!(runs = hub.live_runs(), "the drain time is over; what is left is taken up at the next start");
    }
}
