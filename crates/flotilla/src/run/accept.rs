//! Connections: accepted up to a limit, and let go in good order when the hub stops.

use super::Running;
use axum::body::Body;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How often a quiet HTTP/2 connection is asked whether it is still there.
const PING: Duration = Duration::from_secs(30);
const HEAD_BYTES: usize = 64 * 1024;

/// Serves until `stopped`, then lets what is under way end within the drain time.
pub async fn until(listener: TcpListener, running: &Arc<Running>, stopped: impl Future<Output = ()>) {
    let graceful = GracefulShutdown::new();
    let app = Arc::clone(&running.app);
    let service = service_fn(move |request: Request<Incoming>| {
        let answer = flotilla_inbound::serve(Arc::clone(&app), request.map(Body::new));
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let head_time = running.config.load().limits.head_time.0;
    let mut first = http1::Builder::new();
    first.timer(TokioTimer::new()).header_read_timeout(head_time).max_buf_size(HEAD_BYTES);
    let mut second = http2::Builder::new(TokioExecutor::new());
    second.timer(TokioTimer::new()).keep_alive_interval(Some(PING));
    let places = Arc::new(Semaphore::new(running.config.load().limits.connections));
    tokio::pin!(stopped);
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &places) => accepted,
            () = &mut stopped => break,
        };
        let Some((stream, place)) = accepted else { continue };
        let (first, second, service, watcher) = (first.clone(), second.clone(), service.clone(), graceful.watcher());
        tokio::spawn(async move {
            let ended = match speaks(&stream, head_time).await {
                Some(Speaks::Http1) => watcher.watch(first.serve_connection(TokioIo::new(stream), service)).await,
                Some(Speaks::Http2) => watcher.watch(second.serve_connection(TokioIo::new(stream), service)).await,
                None => Ok(()),
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended early");
            }
            drop(place);
        });
    }
    drop(listener);
    drain(running, graceful).await;
}

enum Speaks {
    Http1,
    Http2,
}

/// How an HTTP/2 connection begins.
const PREFACE: &[u8] = b"PRI * HTTP/2.0";

/// Which version a client speaks, by its first bytes; one that says nothing in time is let go.
async fn speaks(stream: &TcpStream, head_time: Duration) -> Option<Speaks> {
    let mut seen = [0; PREFACE.len()];
    let look = async {
        let mut known = 0;
        loop {
            let count = stream.peek(&mut seen).await.ok().filter(|count| *count > 0)?;
            if seen[..count] != PREFACE[..count] {
                return Some(Speaks::Http1);
            }
            if count == PREFACE.len() {
                return Some(Speaks::Http2);
            }
            // Part of the preface, and peeking again would find the same part at once.
            if count == known {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            known = count;
        }
    };
    tokio::time::timeout(head_time, look).await.ok().flatten()
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
    tokio::pin!(all);
    // Towards the end, whoever still waits for a task is given what there is of it.
    let enough = bound.mul_f32(0.8);
    if tokio::time::timeout(enough, &mut all).await.is_ok() {
        return;
    }
    hub.release_waiting();
    if tokio::time::timeout(bound - enough, all).await.is_err() {
        tracing::warn!(runs = hub.live_runs(), "the drain time is over; what is left is taken up at the next start");
    }
}
