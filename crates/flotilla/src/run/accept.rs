//! Connections: served up to a limit, turned away beyond it, and let go in good order when the hub stops.

use super::Running;
use super::activity::Times;
use super::connection::{self, Terms};
use super::secure::{self, Security};
use flotilla_inbound::Peer;
use metrics::{Gauge, gauge};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;

/// How many connections beyond the limit are told so at once; still more wait in the system's queue.
const CROWD: usize = 256;
/// How long a connection beyond the limit may take to say what it wants, and stay after it was told.
const CROWDED: Times = Times { head: Duration::from_secs(2), idle: Duration::from_millis(500) };

/// Serves until `stopped`, then lets what is under way end within the drain time.
pub async fn until(listener: TcpListener, running: &Arc<Running>, stopped: impl Future<Output = ()>) {
    let (stop, _) = watch::channel(false);
    let places = Places {
        served: Arc::default(),
        open: gauge!("flotilla_connections_open"),
        crowd: Arc::new(Semaphore::new(CROWD)),
    };
    tokio::pin!(stopped);
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &places, running) => accepted,
            () = &mut stopped => break,
        };
        let Some((stream, place, terms)) = accepted else { continue };
        let (app, stop) = (Arc::clone(&running.app), stop.subscribe());
        let security = security(running);
        tokio::spawn(async move {
            if let Some(stream) = Box::pin(secure::open(stream, security, terms.opened + terms.times.head)).await {
                connection::serve(stream, app, terms, stop, place).await;
            }
        });
    }
    drop(listener);
    drain(running, stop).await;
}

/// How the port is secured, by the configuration as it is now.
fn security(running: &Running) -> Option<Security> {
    let acceptor = running.tls.load_full()?;
    let allow_plain = running.config.load().hub.tls.as_ref().is_some_and(|tls| tls.allow_plain);
    Some(Security { acceptor, allow_plain })
}

/// Who is in.
struct Places {
    served: Arc<AtomicUsize>,
    open: Gauge,
    crowd: Arc<Semaphore>,
}

/// A connection's place, given back when it ends.
pub enum Place {
    Served(Arc<AtomicUsize>, Gauge),
    Crowded { _permit: OwnedSemaphorePermit },
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Self::Served(served, open) = self {
            served.fetch_sub(1, Ordering::Relaxed);
            open.decrement(1.0);
        }
    }
}

impl Places {
    /// Only the loop that accepts takes places, so the count cannot pass the limit between the look and the step.
    async fn take(&self, most: usize) -> Option<Place> {
        if self.served.load(Ordering::Relaxed) < most {
            self.served.fetch_add(1, Ordering::Relaxed);
            self.open.increment(1.0);
            return Some(Place::Served(Arc::clone(&self.served), self.open.clone()));
        }
        let permit = Arc::clone(&self.crowd).acquire_owned().await.ok()?;
        Some(Place::Crowded { _permit: permit })
    }
}

/// A connection, its place and what holds for it, by the configuration as it is now.
async fn accept(listener: &TcpListener, places: &Places, running: &Running) -> Option<(TcpStream, Place, Terms)> {
    let (stream, peer) = match listener.accept().await {
        Ok((stream, peer)) => (stream, Peer(peer.ip())),
        Err(error) => {
            tracing::warn!(%error, "accepting a connection");
            // Out of file descriptors, most likely: give others time to close theirs.
            tokio::time::sleep(Duration::from_millis(50)).await;
            return None;
        }
    };
    // Small answers must not wait for more to say.
    let _ = stream.set_nodelay(true);
    let limits = running.config.load().limits.clone();
    let place = places.take(limits.connections).await?;
    let (times, crowded) = match place {
        Place::Served(..) => (Times { head: limits.head_time.0, idle: limits.idle_time.0 }, None),
        Place::Crowded { .. } => (CROWDED, Some(limits.connections)),
    };
    // Who waited for a place did not make us wait.
    let opened = Instant::now();
    Some((stream, place, Terms { opened, times, header_bytes: limits.header_bytes, peer, crowded }))
}

async fn drain(running: &Running, stop: watch::Sender<bool>) {
    let bound = running.config.load().hub.drain.0;
    tracing::info!(?bound, "stopping: streams are told to come back, runs and webhooks are given time to end");
    let hub = &running.app.hub;
    hub.stop_streams();
    stop.send_replace(true);
    let all = async {
        tokio::join!(stop.closed(), hub.idle(), hub.webhooks_landed());
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
