//! A minimal gRPC client: one HTTP/2 connection, one unary call at a time.

use std::future::poll_fn;

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use h2::client::SendRequest;
use http::{HeaderMap, Request};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// The bytes before a message: not compressed, and its length.
const PREFIX: usize = 5;

pub struct Connection {
    sender: SendRequest<Bytes>,
    driver: JoinHandle<()>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connection {
    pub async fn open(address: &str) -> Result<Connection> {
        let stream = TcpStream::connect(address).await.with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true).context("cannot set TCP_NODELAY")?;
        let (sender, connection) = h2::client::handshake(stream).await.context("no HTTP/2")?;
        let driver = tokio::spawn(async move { drop(connection.await) });
        Ok(Connection { sender, driver })
    }

    /// Makes a unary call; `message` is framed, the answer in `body` is not.
    pub async fn call(&mut self, head: &Request<()>, message: Bytes, body: &mut Vec<u8>) -> Result<()> {
        body.clear();
        poll_fn(|context| self.sender.poll_ready(context)).await.context("connection")?;
        let (answer, mut out) = self.sender.send_request(head.clone(), false).context("request")?;
        out.send_data(message, true).context("request")?;
        let (parts, mut stream) = answer.await.context("answer")?.into_parts();
        ensure!(parts.status != 404, Unimplemented);
        ensure!(parts.status == 200, "HTTP status {}", parts.status);
        while let Some(data) = stream.data().await {
            let data = data.context("answer")?;
            let _ = stream.flow_control().release_capacity(data.len());
            body.extend_from_slice(&data);
        }
        let trailers = stream.trailers().await.context("answer")?;
        // An answer without a message may hold its status in the head.
        check_status(trailers.as_ref().unwrap_or(&parts.headers))?;
        ensure!(body.len() >= PREFIX, "an answer without a message");
        body.drain(..PREFIX);
        Ok(())
    }
}

/// The server speaks HTTP/2 and does not know the service.
#[derive(Debug)]
pub struct Unimplemented;

impl std::fmt::Display for Unimplemented {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the service is not implemented")
    }
}

impl std::error::Error for Unimplemented {}

fn check_status(headers: &HeaderMap) -> Result<()> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match text("grpc-status") {
        "0" => Ok(()),
        "12" => bail!(Unimplemented),
        status => bail!("grpc-status {status:?} {}", text("grpc-message")),
    }
}

/// A message with the prefix that says its length.
pub fn framed(message: &[u8]) -> Vec<u8> {
    let mut out = vec![0];
    out.extend_from_slice(&(message.len() as u32).to_be_bytes());
    out.extend_from_slice(message);
    out
}
