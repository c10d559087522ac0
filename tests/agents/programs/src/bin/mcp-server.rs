//! An MCP server on the published crate: over pipes, or over HTTP behind a token. With `modern` it knows only the version
//! without a handshake, with `hang` it never answers, with `die` it ends in the middle.

use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use rmcp::model::ProtocolVersion;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServerHandler, ServiceExt as _};
use std::borrow::Cow;
use std::sync::Arc;

#[derive(Clone)]
struct Server;

impl ServerHandler for Server {}

#[derive(Clone)]
struct Modern;

impl ServerHandler for Modern {
    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(&[ProtocolVersion::V_2026_07_28])
    }
}

async fn guarded(request: Request, next: Next) -> Response {
    match request.headers().get("authorization").and_then(|value| value.to_str().ok()) {
        Some("Bearer let-me-in") => next.run(request).await,
        _ => (StatusCode::UNAUTHORIZED, [("www-authenticate", "Bearer")]).into_response(),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("http") => {
            let config = StreamableHttpServerConfig::default();
            let service = StreamableHttpService::new(|| Ok(Server), Arc::new(LocalSessionManager::default()), config);
            let app = axum::Router::new().route_service("/mcp", service).layer(from_fn(guarded));
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
            println!("http://{}/mcp", listener.local_addr().expect("an address"));
            let until_closed = async {
                let _ = tokio::task::spawn_blocking(|| std::io::read_to_string(std::io::stdin())).await;
            };
            axum::serve(listener, app).with_graceful_shutdown(until_closed).await.expect("served");
        }
        Some("modern") => {
            let running = Modern.serve(rmcp::transport::stdio()).await.expect("a first request");
            running.waiting().await.expect("an orderly end");
        }
        Some("hang") => std::future::pending().await,
        Some("die") => {
            let mut line = String::new();
            std::io::stdin().read_line(&mut line).expect("a line");
            eprintln!("out of cheese");
            std::process::exit(3);
        }
        _ => {
            let running = Server.serve(rmcp::transport::stdio()).await.expect("a handshake");
            running.waiting().await.expect("an orderly end");
        }
    }
}
