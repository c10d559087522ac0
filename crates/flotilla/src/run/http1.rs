//! A connection in HTTP/1: hyper serves its requests; a stream between them, and a socket that it becomes, need none
//! of what a request does.

use super::activity::{Held, Watched};
use super::becoming::{Asked, Becomes, Becoming, Heard};
use super::connection::{Served, drive};
use super::pour::pour;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::watch;

pub async fn serve(mut io: Watched, served: Served, stop: watch::Receiver<bool>) -> hyper::Result<()> {
    loop {
        // In a box of its own, which is given back when the connection becomes something quiet.
        let mut requests = Box::pin(Requests::new(io, &served));
        let part = Requests::part;
        if !drive(requests.as_mut(), part, &served, None, stop.clone()).await? {
            return Ok(());
        }
        let becomes;
        (io, becomes) = Pin::into_inner(requests).end();
        let goes_on = match becomes {
            Some(Becomes::Stream { answer, last }) => pour(&mut io, answer, last).await.unwrap_or(false),
            Some(Becomes::Socket(upgrade)) => {
                upgrade.hand_over(io);
                return Ok(());
            }
            None => false,
        };
        if !goes_on || *stop.borrow() {
            let _ = io.shutdown().await;
            return Ok(());
        }
    }
}

/// Requests, until the connection ends or becomes a stream or a socket.
struct Requests {
    connection: http1::Connection<TokioIo<Watched>, Serving>,
    becoming: Arc<Becoming>,
}

impl Requests {
    fn new(io: Watched, served: &Served) -> Self {
        let becoming = Arc::new(Becoming::default());
        let serving = Serving { served: served.clone(), becoming: Arc::clone(&becoming) };
        let connection = http1::Builder::new()
            .header_read_timeout(None)
            .max_header_size(served.head_bytes())
            .max_buf_size(served.head_bytes())
            .keep_alive(served.terms.crowded.is_none())
            .serve_connection(TokioIo::new(io), serving);
        Self { connection, becoming }
    }

    /// After the request at hand, if any.
    fn part(self: Pin<&mut Self>) {
        Pin::new(&mut self.get_mut().connection).graceful_shutdown();
    }

    fn end(self) -> (Watched, Option<Becomes>) {
        let parts = self.connection.into_parts();
        let mut io = parts.io.into_inner();
        io.unread(&parts.read_buf);
        (io, self.becoming.take())
    }
}

impl Future for Requests {
    type Output = hyper::Result<()>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        let this = self.get_mut();
        match this.connection.poll_without_shutdown(context) {
            // Its answer was made while polling.
            Poll::Pending if this.becoming.is_stream() => Poll::Ready(Ok(())),
            polled => polled,
        }
    }
}

struct Serving {
    served: Served,
    becoming: Arc<Becoming>,
}

impl Service<Request<Incoming>> for Serving {
    type Response = Response<Held>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Held>, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let (begun, becoming) = (self.served.begin(), Arc::clone(&self.becoming));
        // In a box of its own, which is given back when the answer begins: a stream is quiet for long.
        Box::pin(async move {
            let asked = Asked::of(&request);
            let heard = request.map(|body| Body::new(Heard::new(body, Arc::clone(&becoming))));
            Ok(becoming.answer(asked, begun.answer(heard).await).await)
        })
    }
}
