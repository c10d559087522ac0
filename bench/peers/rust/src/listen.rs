//! Where the Rust peers listen. Without TCP_NODELAY an answer may wait for the client's delayed ACK.

use anyhow::{Context, Result};
use futures::{Stream, StreamExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_stream::wrappers::TcpListenerStream;

/// The two arguments: `host:port` for HTTP/1.1 and for gRPC.
pub fn addresses() -> Result<(String, String)> {
    let mut arguments = std::env::args().skip(1);
    let http = arguments.next().context("usage: HTTP_ADDRESS GRPC_ADDRESS")?;
    let grpc = arguments.next().context("usage: HTTP_ADDRESS GRPC_ADDRESS")?;
    Ok((http, grpc))
}

pub async fn bind(address: &str) -> Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))
}

/// Connections as tonic takes them.
pub async fn incoming(address: &str) -> Result<impl Stream<Item = std::io::Result<TcpStream>> + use<>> {
    let accepted = TcpListenerStream::new(bind(address).await?);
    Ok(accepted.map(|stream| stream.and_then(|stream| stream.set_nodelay(true).map(|()| stream))))
}
