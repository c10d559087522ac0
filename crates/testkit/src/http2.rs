//! The same requests over HTTP/2, spoken at once as over TLS-less connections between programs.

use crate::http::{Framing, Request, Response};
use crate::wait::PATIENCE;
use futures_util::stream::{self, StreamExt as _};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Bytes, Frame};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::net::SocketAddr;

/// Sends a request and reads the whole answer; trailers come behind the headers.
pub fn send(address: SocketAddr, request: &Request) -> Response {
    talk(address, request, false)
}

/// Sends a request, reads the answer, and waits until the hub closes the connection.
pub fn send_and_wait_for_the_end(address: SocketAddr, request: &Request) -> Response {
    talk(address, request, true)
}

/// Connects, asks for nothing, and waits until the hub closes the connection; whether it did so in good order.
pub fn is_told_to_go(address: SocketAddr) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be built");
    runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(address).await.expect("the hub takes connections");
        let (sender, connection) = http2::handshake::<_, _, Pieces>(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .expect("the hub speaks HTTP/2");
        let ended = tokio::time::timeout(PATIENCE, connection).await;
        drop(sender);
        ended.unwrap_or_else(|_| panic!("waited {PATIENCE:?} for the end")).is_ok()
    })
}

fn talk(address: SocketAddr, request: &Request, to_the_end: bool) -> Response {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be built");
    let talk = async {
        let stream = tokio::net::TcpStream::connect(address).await.expect("the hub takes connections");
        stream.set_nodelay(true).expect("small frames need not wait for each other");
        let (mut sender, connection) =
            http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("the hub speaks HTTP/2");
        let connection = tokio::spawn(connection);
        let answer = sender.send_request(translated(address, request)).await.expect("an answer");
        let (head, body) = answer.into_parts();
        let body = body.collect().await.expect("the answer does not break off");
        let trailers = body.trailers().cloned().unwrap_or_default();
        if to_the_end {
            // How it ends does not matter, only that it does while this side keeps its end open.
            let _ = connection.await;
        }
        drop(sender);
        let text = |value: &hyper::header::HeaderValue| value.to_str().expect("headers are text").to_owned();
        let headers = head.headers.iter().chain(&trailers).map(|(name, value)| (name.to_string(), text(value)));
        Response { status: head.status.as_u16(), headers: headers.collect(), body: body.to_bytes().to_vec() }
    };
    runtime.block_on(async {
        tokio::time::timeout(PATIENCE, talk).await.unwrap_or_else(|_| panic!("waited {PATIENCE:?} for the hub"))
    })
}

type Pieces = StreamBody<stream::BoxStream<'static, Result<Frame<Bytes>, Infallible>>>;

/// A body shorter than was claimed never ends.
fn translated(address: SocketAddr, request: &Request) -> hyper::Request<Pieces> {
    let mut head = hyper::Request::builder().method(request.verb.as_str());
    head = head.uri(format!("http://{}{}", request.host(address), request.target));
    for (name, value) in request.headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("host")) {
        head = head.header(name, value);
    }
    let piece = stream::iter([Ok(Frame::data(Bytes::from(request.body.clone())))]);
    let pieces = match request.framing {
        Framing::Claimed(length) => {
            head = head.header("content-length", length);
            piece.chain(stream::pending()).boxed()
        }
        Framing::Length | Framing::Chunked => piece.boxed(),
    };
    head.body(StreamBody::new(pieces)).expect("a request that can be sent")
}
