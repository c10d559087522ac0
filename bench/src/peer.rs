//! The comparison server: an echo agent on the official `a2a-server-lf` crate and its in-memory store.
#![forbid(unsafe_code)]

use std::sync::Arc;

use a2a::*;
use a2a_server::{
    AgentExecutor, DefaultRequestHandler, ExecutorContext, InMemoryTaskStore, StaticAgentCard,
    agent_card::agent_card_router, jsonrpc::jsonrpc_router, rest::rest_router,
};
use anyhow::Context;
use axum::serve::ListenerExt;
use clap::Parser;
use futures::StreamExt;
use futures::stream::{self, BoxStream};

#[derive(Parser)]
#[command(about = "In-memory A2A echo server on the official Rust crate")]
struct Args {
    /// Address to listen on; JSON-RPC is at `/`, HTTP+JSON under `/rest`.
    #[arg(long, default_value = "127.0.0.1:4100")]
    listen: String,
}

type Events = BoxStream<'static, Result<StreamResponse, A2AError>>;

/// Echoes the message's parts as one artifact, or streams `N` chunks for the text `chunks N`.
struct Echo;

impl AgentExecutor for Echo {
    fn execute(&self, ctx: ExecutorContext) -> Events {
        let parts = ctx.message.as_ref().map(|m| m.parts.clone());
        let parts = parts.unwrap_or_default();
        match chunk_count(&parts) {
            Some(count) => chunks(ctx, count),
            None => {
                let artifact = artifact(&ctx, new_artifact_id(), parts, None, None);
                let done = status(&ctx, TaskState::Completed);
                Box::pin(stream::iter([Ok(artifact), Ok(done)]))
            }
        }
    }

    fn cancel(&self, ctx: ExecutorContext) -> Events {
        Box::pin(stream::iter([Ok(status(&ctx, TaskState::Canceled))]))
    }
}

/// The `N` of a message whose first text part is `chunks N`.
fn chunk_count(parts: &[Part]) -> Option<usize> {
    let text = parts.iter().find_map(Part::as_text)?;
    text.strip_prefix("chunks ")?.trim().parse().ok()
}

/// `count` pieces of one artifact, then COMPLETED.
///
/// The crate hands events to the subscriber through a queue of 32 and fails the stream of a
/// subscriber that falls behind, so the agent gives way after each chunk.
fn chunks(ctx: ExecutorContext, count: usize) -> Events {
    let id = new_artifact_id();
    let done = status(&ctx, TaskState::Completed);
    let pieces = stream::iter(0..count).then(move |index| {
        let parts = vec![Part::text("chunk")];
        let last = (index + 1 == count).then_some(true);
        let piece = artifact(&ctx, id.clone(), parts, Some(index > 0), last);
        async move {
            tokio::task::yield_now().await;
            Ok(piece)
        }
    });
    Box::pin(pieces.chain(stream::iter([Ok(done)])))
}

fn artifact(
    ctx: &ExecutorContext,
    artifact_id: String,
    parts: Vec<Part>,
    append: Option<bool>,
    last_chunk: Option<bool>,
) -> StreamResponse {
    StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
        task_id: ctx.task_id.clone(),
        context_id: ctx.context_id.clone(),
        artifact: Artifact { artifact_id, name: None, description: None, parts, metadata: None, extensions: None },
        append,
        last_chunk,
        metadata: None,
    })
}

fn status(ctx: &ExecutorContext, state: TaskState) -> StreamResponse {
    StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
        task_id: ctx.task_id.clone(),
        context_id: ctx.context_id.clone(),
        status: TaskStatus { state, message: None, timestamp: Some(chrono::Utc::now()) },
        metadata: None,
    })
}

fn card(listen: &str) -> AgentCard {
    let url = format!("http://{listen}");
    AgentCard {
        name: "peer".into(),
        description: "Echoes the message back.".into(),
        version: "1.0.0".into(),
        supported_interfaces: vec![
            AgentInterface::new(url.clone(), TRANSPORT_PROTOCOL_JSONRPC),
            AgentInterface::new(format!("{url}/rest"), TRANSPORT_PROTOCOL_HTTP_JSON),
        ],
        capabilities: AgentCapabilities { streaming: Some(true), ..AgentCapabilities::default() },
        default_input_modes: vec!["text/plain".into()],
        default_output_modes: vec!["text/plain".into()],
        skills: Vec::new(),
        provider: None,
        documentation_url: None,
        icon_url: None,
        security_schemes: None,
        security_requirements: None,
        signatures: None,
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let handler = Arc::new(DefaultRequestHandler::new(Echo, InMemoryTaskStore::new()));
    let card = Arc::new(StaticAgentCard::new(card(&args.listen)));
    let app = jsonrpc_router(handler.clone())
        .nest("/rest", rest_router(handler))
        .merge(agent_card_router(card))
        .route("/healthz", axum::routing::get(|| async { "ok" }));
    let listener = tokio::net::TcpListener::bind(&args.listen)
        .await
        .with_context(|| format!("cannot listen on {}", args.listen))?
        // Without this each streamed chunk may wait for the client's delayed ACK.
        .tap_io(|stream| drop(stream.set_nodelay(true)));
    axum::serve(listener, app).await.context("server stopped")
}
