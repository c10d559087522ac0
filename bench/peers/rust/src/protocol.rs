//! An echo server on the crate a2a-protocol-server: JSON-RPC at `/`, HTTP+JSON beside it, gRPC on a port of its own.
#![forbid(unsafe_code)]

mod behaviour;
mod listen;

use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;

use a2a_protocol_server::dispatch::CombinedDispatcher;
use a2a_protocol_server::dispatch::grpc::{GrpcConfig, GrpcDispatcher};
use a2a_protocol_server::request_context::RequestContext;
use a2a_protocol_server::store::{InMemoryTaskStore, TaskStoreConfig};
use a2a_protocol_server::streaming::EventQueueWriter;
use a2a_protocol_server::{AgentExecutor, EventEmitter, RequestHandlerBuilder, Server};
use a2a_protocol_types::error::A2aResult;
use a2a_protocol_types::{AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part, TaskState};
use anyhow::Context;
use behaviour::{Ask, CHUNK, IDLE};

struct Echo;

impl AgentExecutor for Echo {
    fn execute<'a>(
        &'a self,
        ctx: &'a RequestContext,
        queue: &'a dyn EventQueueWriter,
    ) -> Pin<Box<dyn Future<Output = A2aResult<()>> + Send + 'a>> {
        Box::pin(async move {
            let emit = EventEmitter::new(ctx, queue);
            match Ask::of(ctx.message.parts.iter().find_map(Part::text_content)) {
                Ask::Echo => emit.artifact("echo", ctx.message.parts.clone(), None, Some(true)).await?,
                Ask::Idle => {
                    emit.status(TaskState::Working).await?;
                    tokio::time::sleep(IDLE).await;
                }
                Ask::Chunks { count, delay } => {
                    emit.status(TaskState::Working).await?;
                    tokio::time::sleep(delay).await;
                    for index in 0..count {
                        let last = (index + 1 == count).then_some(true);
                        emit.artifact("stream", vec![Part::text(CHUNK)], Some(index > 0), last).await?;
                        // Readers run on the same threads: without this they fall behind and lose events.
                        tokio::task::yield_now().await;
                    }
                }
            }
            emit.status(TaskState::Completed).await
        })
    }
}

fn card(http: &str, grpc: &str) -> AgentCard {
    let interfaces = [AgentInterface::rest(format!("http://{http}")), AgentInterface::grpc(format!("http://{grpc}"))];
    let card = AgentCard::new("protocol", "1.0.0", AgentInterface::jsonrpc(format!("http://{http}/")))
        .with_description("Echoes the message back.")
        .with_capabilities(AgentCapabilities::none().with_streaming(true))
        .with_skill(AgentSkill::new("echo", "Echo", "Echoes the message back.").with_tags(["echo"]));
    interfaces.into_iter().fold(card, AgentCard::with_interface)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let (http, grpc) = listen::addresses()?;
    // The crate's own defaults forget tasks after a time and a number; the others keep all.
    let mut store = TaskStoreConfig::default();
    store.max_capacity = None;
    store.task_ttl = None;
    let handler = RequestHandlerBuilder::new(Echo)
        .with_agent_card(card(&http, &grpc))
        .with_task_store(InMemoryTaskStore::with_config(store))
        .with_max_concurrent_streams(100_000)
        .build()
        .map_err(|error| anyhow::anyhow!("{error}"))?;
    let handler = Arc::new(handler);
    // The crate's own gRPC listener leaves TCP_NODELAY off.
    let service = GrpcDispatcher::new(handler.clone(), GrpcConfig::default()).into_service();
    let incoming = listen::incoming(&grpc).await?;
    tokio::spawn(tonic::transport::Server::builder().add_service(service).serve_with_incoming(incoming));
    let server = Server::bind(&http).await.with_context(|| format!("cannot listen on {http}"))?;
    server.serve_with_shutdown(CombinedDispatcher::new(handler), pending()).await;
    Ok(())
}
