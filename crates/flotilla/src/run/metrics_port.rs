//! Metrics at an address of their own: nothing else is served there, and no key is asked for.

use super::connection::FAREWELL;
use anyhow::{Context as _, Result};
use axum::body::Body;
use flotilla_inbound::App;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Readers at once; more of them wait in the system's queue.
const READERS: usize = 16;
/// How long a reader may take over one request and its answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Listens, where the configuration asks for it.
pub async fn bind(address: Option<SocketAddr>) -> Result<Option<TcpListener>> {
    let Some(address) = address else { return Ok(None) };
    let listener = TcpListener::bind(address).await;
    listener.map(Some).with_context(|| format!("listening on {address} (metrics.listen)"))
}

/// Serves readers, for ever.
pub async fn serve(listener: TcpListener, app: Arc<App>) {
    let places = Arc::new(Semaphore::new(READERS));
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                let app = Arc::clone(&app);
                tokio::spawn(async move {
                    let _ = tokio::time::timeout(PATIENCE, answer(stream, app)).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "accepting a reader of metrics");
                tokio::time::sleep(FAREWELL).await;
            }
        }
    }
}

async fn answer(stream: TcpStream, app: Arc<App>) {
    let service = service_fn(move |request: Request<Incoming>| {
        let app = Arc::clone(&app);
        async move { Ok::<_, Infallible>(route(&app, &request)) }
    });
    let mut http = http1::Builder::new();
    let connection = http.timer(TokioTimer::new()).keep_alive(false).serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a reader of metrics went away");
    }
}

fn route(app: &App, request: &Request<Incoming>) -> Response<Body> {
    let refuse = |status, text: &'static str| {
        let mut response = Response::new(Body::from(text));
        *response.status_mut() = status;
        response
    };
    match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/metrics") => flotilla_inbound::serve_metrics(app),
        (_, "/metrics") => refuse(StatusCode::METHOD_NOT_ALLOWED, "/metrics takes GET.\n"),
        _ => refuse(StatusCode::NOT_FOUND, "Only /metrics is served here.\n"),
    }
}
