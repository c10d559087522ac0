//! The ceiling: a bare axum handler that decodes SendMessage and answers with the echoed task, and keeps nothing.
#![forbid(unsafe_code)]

mod grpc;

use anyhow::{Context, Result};
use axum::Router;
use axum::body::Bytes;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::serve::ListenerExt;
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Stands for the ids that a real server makes.
pub const ID: &str = "0196f1c2-7b1e-7c3a-9b6e-2f4d5a6b7c8d";

/// The task that a message becomes; None if it is no message.
fn task(request: &Value) -> Option<Value> {
    let message = request.get("message")?;
    message.get("messageId")?.as_str()?;
    Some(json!({
        "task": {
            "id": ID,
            "contextId": ID,
            "status": {"state": "TASK_STATE_COMPLETED", "timestamp": "2026-01-01T00:00:00.000Z"},
            "artifacts": [{"artifactId": ID, "parts": message.get("parts")?}],
            "history": [message],
        }
    }))
}

fn json_answer(answer: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], answer.to_string()).into_response()
}

async fn rpc(body: Bytes) -> Response {
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    match (request["method"].as_str(), task(&request["params"])) {
        (Some("SendMessage"), Some(task)) => {
            json_answer(&json!({"jsonrpc": "2.0", "id": request["id"], "result": task}))
        }
        _ => StatusCode::BAD_REQUEST.into_response(),
    }
}

async fn rest(body: Bytes) -> Response {
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    task(&request).map_or_else(|| StatusCode::BAD_REQUEST.into_response(), |task| json_answer(&task))
}

async fn serve(address: String, app: Router) -> Result<()> {
    let listener = tokio::net::TcpListener::bind(&address).await;
    let listener = listener.with_context(|| format!("cannot listen on {address}"))?;
    axum::serve(listener.tap_io(|stream| drop(stream.set_nodelay(true))), app).await.context("server stopped")
}

#[tokio::main]
async fn main() -> Result<()> {
    let mut addresses = std::env::args().skip(1);
    let http = addresses.next().context("usage: ceiling HTTP_ADDRESS GRPC_ADDRESS")?;
    let grpc = addresses.next().context("usage: ceiling HTTP_ADDRESS GRPC_ADDRESS")?;
    let calls = Router::new().route("/lf.a2a.v1.A2AService/SendMessage", post(grpc::send_message));
    let served = tokio::spawn(serve(grpc, calls));
    serve(http, Router::new().route("/", post(rpc)).route("/message:send", post(rest))).await?;
    served.await.context("gRPC stopped")?
}
