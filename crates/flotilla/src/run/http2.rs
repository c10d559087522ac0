//! A connection in HTTP/2: any number of requests at once. One of them is worked on where the connection itself is, so
//! that a client with one request at a time, as most are, needs no other task to be woken for it; the others have tasks
//! of their own.

use super::activity::Watched;
use super::connection::{FAREWELL, Served, drive};
use axum::body::Body;
use hyper::Request;
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::sync::watch;

pub async fn serve(io: Watched, served: Served, stop: watch::Receiver<bool>) -> hyper::Result<()> {
    let most = u32::try_from(served.head_bytes()).unwrap_or(u32::MAX);
    let (activity, times) = (Arc::clone(&served.activity), served.terms.times);
    let patience = served.keep_alive();
    let service = service_fn(move |request: Request<Incoming>| {
        let begun = served.begin();
        Box::pin(async move { Ok::<_, Infallible>(begun.answer(request.map(Body::new)).await) })
    });
    let near = Near::default();
    let connection = http2::Builder::new(near.clone())
        .timer(TokioTimer::new())
        .keep_alive_interval(Some(patience))
        .max_header_list_size(most)
        .serve_connection(TokioIo::new(io), service);
    // In a box of its own, so that a connection takes the room of the version it speaks, and only once.
    let mut requests = Box::pin(Requests { connection, near });
    let part = |requests: Pin<&mut Requests<_>>| http2::Connection::graceful_shutdown(requests.connection());
    drive(requests.as_mut(), part, &activity, times, Some(FAREWELL), stop).await.map(drop)
}

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The request that is worked on in its connection's task.
#[derive(Clone, Default)]
struct Near(Arc<Mutex<Option<Work>>>);

impl Near {
    fn place(&self) -> MutexGuard<'_, Option<Work>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it has just ended. Its place is free meanwhile: what it does may bring more work.
    fn poll(&self, context: &mut Context<'_>) -> bool {
        let Some(mut work) = self.place().take() else { return false };
        let ended = work.as_mut().poll(context).is_ready();
        if !ended {
            self.put(work);
        }
        ended
    }

    fn put(&self, work: Work) {
        let mut place = self.place();
        if place.is_none() {
            *place = Some(work);
        } else {
            drop(place);
            tokio::spawn(work);
        }
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Near {
    fn execute(&self, work: F) {
        self.put(Box::pin(work));
    }
}

struct Requests<C> {
    connection: C,
    near: Near,
}

impl<C> Drop for Requests<C> {
    fn drop(&mut self) {
        // The work knows the place it is in, and would keep it for ever.
        let work = self.near.place().take();
        drop(work);
    }
}

impl<C: Unpin> Requests<C> {
    fn connection(self: Pin<&mut Self>) -> Pin<&mut C> {
        Pin::new(&mut self.get_mut().connection)
    }
}

impl<C: Future + Unpin> Future for Requests<C> {
    type Output = C::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<C::Output> {
        let this = self.get_mut();
        loop {
            if let Poll::Ready(ended) = Pin::new(&mut this.connection).poll(context) {
                return Poll::Ready(ended);
            }
            // What it said is to be written.
            if !this.near.poll(context) {
                return Poll::Pending;
            }
        }
    }
}
