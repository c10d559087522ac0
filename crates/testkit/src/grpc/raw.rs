//! Calls of the test's own making: any path, any bytes, and the services beside A2A's.

use super::{Raw, connect, dress, runtime, texts};
use crate::wait::PATIENCE;
use bytes::Bytes;
use std::net::SocketAddr;
use tokio::runtime::Runtime;
use tonic::codec::Streaming;

/// What a raw call comes to: the status code, its message, and the metadata it came with.
pub struct Raised {
    pub code: i32,
    pub message: String,
    pub details: Vec<u8>,
    pub metadata: Vec<(String, String)>,
}

/// Sends bytes of the test's own making to any method, and expects them to be refused.
pub fn refused(address: SocketAddr, metadata: &[(String, String)], path: &str, message: Vec<u8>) -> Raised {
    call(address, metadata, path, message, false)
}

/// The same with the message compressed.
pub fn compressed(address: SocketAddr, metadata: &[(String, String)], path: &str, message: Vec<u8>) -> Raised {
    call(address, metadata, path, message, true)
}

fn call(address: SocketAddr, metadata: &[(String, String)], path: &str, message: Vec<u8>, zip: bool) -> Raised {
    let runtime = runtime();
    let answer = runtime.block_on(async {
        let mut client = connect(address).await?;
        if zip {
            client = client.send_compressed(tonic::codec::CompressionEncoding::Gzip);
        }
        let mut request = tonic::Request::new(Bytes::from(message));
        dress(&mut request, metadata);
        client.unary(request, path.parse().expect("a path"), Raw).await
    });
    let status = answer.map(|_| ()).expect_err("refused");
    Raised {
        code: status.code().into(),
        message: status.message().to_owned(),
        details: status.details().to_vec(),
        metadata: texts(status.metadata()),
    }
}

const HEALTH: &str = "/grpc.health.v1.Health";

/// HealthCheckRequest.service = 1.
fn health_request(service: &str) -> tonic::Request<Bytes> {
    let mut request = Vec::new();
    prost::encoding::string::encode(1, &service.to_owned(), &mut request);
    tonic::Request::new(Bytes::from(request))
}

/// HealthCheckResponse.status = 1: 1 is serving, 2 is not.
fn serving(answer: &Bytes) -> u8 {
    answer.get(1).copied().unwrap_or(0)
}

/// A health check, for a service or for all; or the status code it is refused with.
pub fn health(address: SocketAddr, service: &str) -> Result<u8, i32> {
    let answer = runtime().block_on(async {
        let path = format!("{HEALTH}/Check").parse().expect("a path");
        connect(address).await?.unary(health_request(service), path, Raw).await
    });
    answer.map(|answer| serving(answer.get_ref())).map_err(|status| status.code().into())
}

/// A watch over the health of a service, or of all.
pub struct Health {
    runtime: Runtime,
    states: Streaming<Bytes>,
}

pub fn watch_health(address: SocketAddr, service: &str) -> Health {
    let runtime = runtime();
    let opened = runtime.block_on(async {
        let path = format!("{HEALTH}/Watch").parse().expect("a path");
        connect(address).await?.server_streaming(health_request(service), path, Raw).await
    });
    Health { runtime, states: opened.expect("a watch").into_inner() }
}

/// Puts questions to any method that streams both ways, one after the other; the answers, and the status that ended them.
pub fn converse(address: SocketAddr, path: &str, questions: Vec<Vec<u8>>) -> (Vec<Bytes>, i32) {
    runtime().block_on(async {
        let questions = tonic::codegen::tokio_stream::iter(questions.into_iter().map(Bytes::from));
        let mut client = connect(address).await.expect("a connection");
        let opened = client.streaming(tonic::Request::new(questions), path.parse().expect("a path"), Raw).await;
        let mut answers = opened.expect("a stream").into_inner();
        let mut all = Vec::new();
        loop {
            match tokio::time::timeout(PATIENCE, answers.message()).await.expect("an answer in time") {
                Ok(Some(answer)) => all.push(answer),
                Ok(None) => return (all, 0),
                Err(status) => return (all, status.code().into()),
            }
        }
    })
}

impl Health {
    /// Whether the watch goes on, as far as can be told in a moment.
    pub fn is_open(&mut self) -> bool {
        let moment = std::time::Duration::from_millis(200);
        self.runtime.block_on(async { tokio::time::timeout(moment, self.states.message()).await }).is_err()
    }

    /// The next state; none when the watch has ended.
    pub fn state(&mut self) -> Option<u8> {
        let next = self.runtime.block_on(async { tokio::time::timeout(PATIENCE, self.states.message()).await });
        let next = next.unwrap_or_else(|_| panic!("waited {PATIENCE:?} for word of the hub's health"));
        next.ok().flatten().as_ref().map(serving)
    }
}
