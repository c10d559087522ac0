"""A remote agent of the matrix on the Python SDK of A2A 0.3, over its three bindings: does what ../matrix/README.md says.

python peer.py [PORT] prints its URL, serves, and ends when its standard input does.
"""

import asyncio
import socket
import sys
import threading

import grpc
import uvicorn
from a2a.grpc.a2a_pb2_grpc import add_A2AServiceServicer_to_server
from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2ARESTFastAPIApplication, A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.request_handlers.grpc_handler import GrpcHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    DataPart,
    FilePart,
    FileWithBytes,
    FileWithUri,
    Message,
    Part,
    Role,
    TaskState,
    TextPart,
)
from a2a.utils import new_task

canceled = set()


def text(words, **more):
    return Part(root=TextPart(text=words, **more))


def data(value):
    return Part(root=DataPart(data=value))


FILES = [
    text("a text", metadata={"kind": "note"}),
    Part(root=FilePart(file=FileWithBytes(bytes="AAEC/w==", name="blob.bin", mime_type="application/octet-stream"))),
    Part(root=FilePart(file=FileWithUri(uri="https://example.com/a.png", name="a.png", mime_type="image/png"))),
    data({"nested": {"list": [1, 2.5, "three", None, True]}}),
]


class Peer(AgentExecutor):
    """Does what the first word of the message says."""

    async def execute(self, context, events):
        words = context.get_user_input().split() or [""]
        if words[0] == "direct":
            answer = Message(
                message_id=f"answer-{context.message.message_id}",
                role=Role.agent,
                parts=[text("You said " + " ".join(words)), data({"direct": True})],
                context_id=context.context_id,
            )
            return await events.enqueue_event(answer)
        before = context.current_task.history if context.current_task else []
        turn = len({message.message_id for message in [*before, context.message] if message.role == Role.user})
        if not context.current_task:
            await events.enqueue_event(new_task(context.message))
        task = TaskUpdater(events, context.task_id, context.context_id)
        await self.obey(task, words, turn, context.message)

    async def obey(self, task, words, turn, message):
        def say(what):
            return task.new_agent_message([text(what)])

        match words[0]:
            case "stream":
                await task.start_work(say("Streaming"))
                for n, chunk in enumerate(chunks := ["one ", "two ", "three"], 1):
                    last = n == len(chunks)
                    await task.add_artifact([text(chunk)], artifact_id="story", name="story", append=n > 1, last_chunk=last)
                await task.complete(say("Streamed"))
            case "drip":  # a chunk every so often, for tests that cut in
                await task.start_work(say("Dripping"))
                for n in range(int(words[1])):
                    await task.add_artifact([text(f"{n} ")], artifact_id="drip", append=n > 0, last_chunk=False)
                    await asyncio.sleep(float(words[2]))
                await task.complete(say("Dripped"))
            case "slow":
                await task.start_work(say("Taking my time"))
                await asyncio.sleep(float(words[1]))
                await task.add_artifact([text("At last")], name="result")
                await task.complete(say("Done"))
            case "hold":
                await task.start_work(say("Holding"))
                await asyncio.sleep(600)
                await task.failed(say("Nobody canceled this task"))
            case "canceled":
                await task.add_artifact([text("yes" if words[1] in canceled else "no")], name="canceled")
                await task.complete()
            case "order":
                await task.update_status(TaskState.input_required, say("Which size?"), final=True)
            case "signin":  # and goes on by itself
                await task.requires_auth(say("Please sign in"))
                await asyncio.sleep(1.5)
                await task.add_artifact([text("Signed in")], name="result")
                await task.complete(say("Done"))
            case "files":
                await task.add_artifact(FILES, artifact_id="files")
                await task.complete()
            case "mirror":
                await task.add_artifact(message.parts[1:], artifact_id="mirror")
                await task.complete()
            case "fail":
                await task.start_work()
                await task.failed(say("This went wrong"))
            case _ if turn > 1:
                await task.start_work(say("Baking"))
                await task.add_artifact([data({"size": words[0], "turn": str(turn)})], name="order")
                await task.complete(say("Here you are"))
            case _:
                await task.add_artifact([text("You said " + " ".join(words))], name="reply")
                await task.complete(say("Done"))

    async def cancel(self, context, events):
        said = context.current_task.history[0].parts[0].root.text.split()
        canceled.update(said)
        await TaskUpdater(events, context.task_id, context.context_id).cancel()


def card(url, grpc_address):
    return AgentCard(
        name="Peer of 0.3",
        description="Does what the first word says.",
        version="0.3.26",
        protocol_version="0.3.0",
        url=f"{url}/rpc",
        preferred_transport="JSONRPC",
        additional_interfaces=[
            AgentInterface(url=f"{url}/rpc", transport="JSONRPC"),
            AgentInterface(url=f"{url}", transport="HTTP+JSON"),
            AgentInterface(url=grpc_address, transport="GRPC"),
        ],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain", "application/json", "application/octet-stream", "image/png"],
        default_output_modes=["text/plain", "application/json"],
        skills=[AgentSkill(id="obey", name="Obey", description="Does what the first word says.", tags=["test"])],
    )


async def main(port):
    listener = socket.create_server(("127.0.0.1", port))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    server = grpc.aio.server()
    grpc_port = server.add_insecure_port("127.0.0.1:0")
    shown = card(url, f"127.0.0.1:{grpc_port}")
    handler = DefaultRequestHandler(agent_executor=Peer(), task_store=InMemoryTaskStore())
    add_A2AServiceServicer_to_server(GrpcHandler(shown, handler), server)
    await server.start()
    app = A2ARESTFastAPIApplication(agent_card=shown, http_handler=handler).build()
    rpc = A2AStarletteApplication(agent_card=shown, http_handler=handler)
    app.router.routes[:0] = [route for route in rpc.routes(rpc_url="/rpc") if route.path == "/rpc"]
    http = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1))

    def until_told():
        sys.stdin.read()
        http.should_exit = True

    threading.Thread(target=until_told, daemon=True).start()
    print(url, flush=True)
    await http.serve(sockets=[listener])
    await server.stop(0)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if sys.argv[1:] else 0))
