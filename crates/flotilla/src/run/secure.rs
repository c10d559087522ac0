//! The beginning of a connection: in the clear or by TLS, in HTTP/1.1 or HTTP/2, told by its first bytes.

use flotilla_core::limits::{Limit, count_over};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// How the port is secured.
pub struct Security {
    pub acceptor: Arc<TlsAcceptor>,
    /// Whether requests in the clear are served as well.
    pub allow_plain: bool,
}

/// A connection whose bytes can be read, whichever way they came.
pub enum Socket {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

pub enum Speaks {
    Http1,
    Http2,
}

/// How an HTTP/2 connection begins.
const PREFACE: &[u8] = b"PRI * HTTP/2.0";
/// How a TLS connection begins: a record that holds a handshake.
const HANDSHAKE: u8 = 0x16;
/// Told to who speaks in the clear where only TLS is spoken.
const USE_TLS: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\nconnection: close\r\n\
    content-length: 67\r\n\r\nThis port speaks TLS: use https:// (for gRPC, a secure channel).  \n";

/// Shakes hands where that is asked for; who does not in time, or not at all, is let go.
pub async fn open(stream: TcpStream, security: Option<Security>, deadline: Instant) -> Option<Socket> {
    let Some(security) = security else { return Some(Socket::Plain(stream)) };
    let opened = tokio::time::timeout_at(deadline, async {
        let mut first = [0; 1];
        let count = stream.peek(&mut first).await.ok()?;
        if count == 1 && first[0] == HANDSHAKE {
            let opened = security.acceptor.accept(stream).await;
            let failed = |error: &io::Error| tracing::debug!(%error, "a TLS handshake failed");
            return opened.inspect_err(failed).ok().map(|stream| Socket::Tls(Box::new(stream)));
        }
        if security.allow_plain {
            return Some(Socket::Plain(stream));
        }
        turn_away(stream).await;
        None
    });
    opened.await.unwrap_or_else(|_| {
        count_over(Limit::HeadTime.name(), "connection");
        None
    })
}

async fn turn_away(mut stream: TcpStream) {
    let _ = stream.write_all(USE_TLS).await;
    let _ = stream.shutdown().await;
    // What the client is still sending is read, or the answer would be lost with the connection.
    let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
}

impl Socket {
    /// Which version of HTTP the client speaks; none if it says nothing in time.
    pub async fn speaks(&self, deadline: Instant) -> Option<Speaks> {
        match self {
            Self::Plain(stream) => speaks(stream, deadline).await,
            Self::Tls(stream) => match stream.get_ref().1.alpn_protocol() {
                Some(b"h2") => Some(Speaks::Http2),
                _ => Some(Speaks::Http1),
            },
        }
    }
}

/// Which version a client speaks in the clear, by its first bytes.
async fn speaks(stream: &TcpStream, deadline: Instant) -> Option<Speaks> {
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
    match tokio::time::timeout_at(deadline, look).await {
        Ok(known) => known,
        Err(_) => {
            count_over(Limit::HeadTime.name(), "connection");
            None
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }
    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(context, slices),
        }
    }
    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
        }
    }
}
