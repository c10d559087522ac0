//! An echo server on the official Rust crates: JSON-RPC at `/`, HTTP+JSON under `/rest`, gRPC on a port of its own.
#![forbid(unsafe_code)]

mod behaviour;
mod listen;

use std::sync::Arc;
use std::time::Duration;

use a2a::*;
use a2a_grpc::GrpcHandler;
use a2a_pb::proto::a2a_service_server::A2aServiceServer;
use a2a_server::{
    AgentExecutor, DefaultRequestHandler, ExecutorContext, InMemoryTaskStore, StaticAgentCard,
    agent_card::agent_card_router, jsonrpc::jsonrpc_router, rest::rest_router,
};
use anyhow::Context;
use axum::serve::ListenerExt;
use behaviour::{Ask, CHUNK, IDLE};
use futures::StreamExt;
use futures::stream::{self, BoxStream};

type Events = BoxStream<'static, Result<StreamResponse, A2AError>>;

struct Echo;

impl AgentExecutor for Echo {
    fn execute(&self, ctx: ExecutorContext) -> Events {
        let parts = ctx.message.as_ref().map(|m| m.parts.clone()).unwrap_or_default();
        match Ask::of(parts.iter().find_map(Part::as_text)) {
            Ask::Chunks { count, delay } => chunks(ctx, count, delay),
            Ask::Idle => {
                let working = status(&ctx, TaskState::Working);
                let done = async move {
                    tokio::time::sleep(IDLE).await;
                    Ok(status(&ctx, TaskState::Completed))
                };
                Box::pin(stream::iter([Ok(working)]).chain(stream::once(done)))
            }
            Ask::Echo => {
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

/// WORKING, a wait, `count` pieces of one artifact, COMPLETED.
///
/// The crate hands events to the subscriber through a queue of 32 and fails the stream of a
/// subscriber that falls behind, so the agent gives way after each chunk.
fn chunks(ctx: ExecutorContext, count: usize, delay: Duration) -> Events {
    let id = new_artifact_id();
    let working = status(&ctx, TaskState::Working);
    let done = status(&ctx, TaskState::Completed);
    let pieces = stream::iter(0..count).then(move |index| {
        let parts = vec![Part::text(CHUNK)];
        let last = (index + 1 == count).then_some(true);
        let piece = artifact(&ctx, id.clone(), parts, Some(index > 0), last);
        async move {
            if index == 0 {
                tokio::time::sleep(delay).await;
            }
            tokio::task::yield_now().await;
            Ok(piece)
        }
    });
    Box::pin(stream::iter([Ok(working)]).chain(pieces).chain(stream::iter([Ok(done)])))
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

fn card(http: &str, grpc: &str) -> AgentCard {
    let url = format!("http://{http}");
    AgentCard {
        name: "official".into(),
        description: "Echoes the message back.".into(),
        version: "1.0.0".into(),
        supported_interfaces: vec![
            AgentInterface::new(url.clone(), TRANSPORT_PROTOCOL_JSONRPC),
            AgentInterface::new(format!("{url}/rest"), TRANSPORT_PROTOCOL_HTTP_JSON),
            AgentInterface::new(format!("http://{grpc}"), TRANSPORT_PROTOCOL_GRPC),
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
pub async fn main() -> anyhow::Result<()> {
    let (http, grpc) = listen::addresses()?;
    let handler = Arc::new(DefaultRequestHandler::new(Echo, InMemoryTaskStore::new()));
    let card = Arc::new(StaticAgentCard::new(card(&http, &grpc)));
    let service = A2aServiceServer::new(GrpcHandler::new(handler.clone()));
    let app = jsonrpc_router(handler.clone()).nest("/rest", rest_router(handler)).merge(agent_card_router(card));

    let incoming = listen::incoming(&grpc).await?;
    tokio::spawn(tonic::transport::Server::builder().add_service(service).serve_with_incoming(incoming));
    let listener = listen::bind(&http).await?.tap_io(|stream| drop(stream.set_nodelay(true)));
    axum::serve(listener, app).await.context("server stopped")
}
