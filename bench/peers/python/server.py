"""An echo server on a2a-sdk and uvicorn: JSON-RPC at `/`, HTTP+JSON beside it, gRPC on a port of its own."""

import asyncio
import sys

import grpc.aio
import uvicorn
import uvloop
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler, GrpcHandler
from a2a.server.routes import create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import a2a_pb2_grpc
from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, AgentInterface, Part, Task, TaskState, TaskStatus
from starlette.applications import Starlette

IDLE_SECONDS = 3600


class Echo(AgentExecutor):
    """Does what peers/rust/src/behaviour.rs says."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        # The SDK wants the task first, with the message in its history.
        await event_queue.enqueue_event(
            Task(
                id=context.task_id,
                context_id=context.context_id,
                status=TaskStatus(state=TaskState.TASK_STATE_SUBMITTED),
                history=[context.message],
            )
        )
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        words = context.get_user_input().split(" ")
        if words == ["idle"]:
            await updater.start_work()
            await asyncio.sleep(IDLE_SECONDS)
        elif words[0] == "chunks" and len(words) == 3:
            await updater.start_work()
            await asyncio.sleep(int(words[2].removesuffix("ms")) / 1000)
            count = int(words[1])
            for index in range(count):
                await updater.add_artifact(
                    [Part(text="chunk")], artifact_id="stream", append=index > 0, last_chunk=index + 1 == count
                )
        else:
            await updater.add_artifact(list(context.message.parts))
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def card(http: str, grpc_address: str) -> AgentCard:
    interfaces = [("JSONRPC", f"http://{http}/"), ("HTTP+JSON", f"http://{http}"), ("GRPC", grpc_address)]
    return AgentCard(
        name="python",
        description="Echoes the message back.",
        version="1.0.0",
        capabilities=AgentCapabilities(streaming=True),
        supported_interfaces=[
            AgentInterface(protocol_binding=binding, url=url, protocol_version="1.0") for binding, url in interfaces
        ],
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
    )


async def main(http: str, grpc_address: str) -> None:
    handler = DefaultRequestHandler(
        agent_executor=Echo(), task_store=InMemoryTaskStore(), agent_card=card(http, grpc_address)
    )
    calls = grpc.aio.server()
    a2a_pb2_grpc.add_A2AServiceServicer_to_server(GrpcHandler(handler), calls)
    calls.add_insecure_port(grpc_address)
    await calls.start()
    app = Starlette(routes=[*create_jsonrpc_routes(handler, "/"), *create_rest_routes(handler)])
    host, port = http.split(":")
    config = uvicorn.Config(
        app, host=host, port=int(port), http="httptools", log_level="warning", access_log=False, backlog=4096
    )
    await uvicorn.Server(config).serve()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], sys.argv[2]))
