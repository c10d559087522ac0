"""An agent of the official Python SDK over its three bindings, for the command line to talk to: does as it is told.

python agent.py [--tls CERT KEY] [--oauth SERVER] prints its URL, serves, and ends when its standard input does. With a
token server it lets in only whom that server knows, and speaks HTTP alone.
"""

import asyncio
import socket
import sys
import threading

import grpc
import uvicorn
from a2a.helpers.proto_helpers import new_data_part, new_task_from_user_message, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.request_handlers.grpc_handler import GrpcHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
    TaskUpdater,
)
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    ClientCredentialsOAuthFlow,
    DeviceCodeOAuthFlow,
    OAuth2SecurityScheme,
    OAuthFlows,
    Part,
    SecurityRequirement,
    SecurityScheme,
)
from a2a.types.a2a_pb2_grpc import add_A2AServiceServicer_to_server
from google.protobuf.json_format import MessageToDict
import httpx
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import JSONResponse


class Obedient(AgentExecutor):
    """Does what the first word of the message says."""

    async def execute(self, context, events):
        words = context.get_user_input()
        word = words.split()[0] if words.split() else ""
        if word == "direct":
            return await events.enqueue_event(new_text_message("Hello yourself", context_id=context.context_id))
        if not context.current_task:
            await events.enqueue_event(new_task_from_user_message(context.message))
        task = TaskUpdater(events, context.task_id, context.context_id)
        say = task.new_agent_message
        if word == "ask":
            return await task.requires_input(say([new_text_part("Which size?")]))
        if word == "login":
            return await task.requires_auth(say([new_text_part("Who are you?")]))
        if word == "reject":
            return await task.reject(say([new_text_part("Not my job")]))
        await task.start_work(say([new_text_part("On it")]))
        if word == "fail":
            return await task.failed(say([new_text_part("It broke")]))
        if word in ("slow", "hold"):
            await asyncio.sleep(1.5 if word == "slow" else 600)
        if word == "files":
            parts = [
                Part(raw=b"\x00\x01\x02\xff", filename="blob.bin", media_type="application/octet-stream"),
                Part(url="https://example.com/a.png", filename="a.png", media_type="image/png"),
                new_data_part({"nested": [1, "two"]}),
            ]
            await task.add_artifact(parts, name="files")
        # What came, so that a test can see it.
        sent = {"parts": [MessageToDict(part) for part in context.message.parts], "metadata": context.metadata}
        await task.add_artifact([new_text_part(f"You said {words}"), new_data_part(sent)], name="result")
        await task.complete(say([new_text_part("All done")]))

    async def cancel(self, context, events):
        await TaskUpdater(events, context.task_id, context.context_id).cancel()


class Admission:
    """Shows the card to everybody, and lets in whom the token server knows."""

    def __init__(self, app, server):
        self.app, self.server = app, server

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http" and not scope["path"].startswith("/.well-known/"):
            shown = dict(scope["headers"]).get(b"authorization", b"")
            async with httpx.AsyncClient() as client:
                known = await client.get(f"{self.server}/known", headers={"Authorization": shown})
            if known.status_code != 200:
                return await JSONResponse({"error": "sign in first"}, 401)(scope, receive, send)
        await self.app(scope, receive, send)


def require_sign_in(card, server):
    """Either flow of the server will do. A scheme has room for one."""
    common = {"token_url": f"{server}/token", "scopes": {"use": "calls the agent"}}
    device = DeviceCodeOAuthFlow(device_authorization_url=f"{server}/device", **common)
    flows = {
        "person": OAuthFlows(device_code=device),
        "machine": OAuthFlows(client_credentials=ClientCredentialsOAuthFlow(**common)),
    }
    for name, flow in flows.items():
        scheme = SecurityScheme(oauth2_security_scheme=OAuth2SecurityScheme(flows=flow))
        card.security_schemes[name].CopyFrom(scheme)
        requirement = SecurityRequirement()
        requirement.schemes[name].list.append("use")
        card.security_requirements.append(requirement)
    spoken = [interface for interface in card.supported_interfaces if interface.protocol_binding != "GRPC"]
    del card.supported_interfaces[:]
    card.supported_interfaces.extend(spoken)


def card(url, grpc_address):
    def interface(address, binding):
        return AgentInterface(url=address, protocol_binding=binding, protocol_version="1.0")

    return AgentCard(
        name="Obedient",
        description="Does what the first word says.",
        version="1.0.0",
        supported_interfaces=[
            interface(f"{url}/rpc", "JSONRPC"),
            interface(url, "HTTP+JSON"),
            interface(grpc_address, "GRPC"),
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=True),
        default_input_modes=["text/plain", "application/json", "application/octet-stream", "image/png"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="obey", name="Obey", description="Does what the first word says.", tags=["test"])],
    )


async def main(executor, tls=None, port=0, oauth=None):
    listener = socket.create_server(("127.0.0.1", port))
    url = f"{'https' if tls else 'http'}://127.0.0.1:{listener.getsockname()[1]}"
    server = grpc.aio.server()
    if tls:
        with open(tls[0], "rb") as cert, open(tls[1], "rb") as key:
            credentials = grpc.ssl_server_credentials([(key.read(), cert.read())])
        grpc_port = server.add_secure_port("127.0.0.1:0", credentials)
    else:
        grpc_port = server.add_insecure_port("127.0.0.1:0")
    shown = card(url, f"127.0.0.1:{grpc_port}")
    if oauth:
        require_sign_in(shown, oauth)
    configs = InMemoryPushNotificationConfigStore()
    handler = DefaultRequestHandler(
        agent_executor=executor,
        task_store=InMemoryTaskStore(),
        agent_card=shown,
        push_config_store=configs,
        push_sender=BasePushNotificationSender(httpx.AsyncClient(), configs),
    )
    add_A2AServiceServicer_to_server(GrpcHandler(handler), server)
    await server.start()
    routes = [
        *create_agent_card_routes(shown),
        *create_jsonrpc_routes(handler, "/rpc"),
        *create_rest_routes(handler),
    ]
    files = {"ssl_certfile": tls[0], "ssl_keyfile": tls[1]} if tls else {}
    app = Starlette(routes=routes, middleware=[Middleware(Admission, server=oauth)] if oauth else [])
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1, **files)
    http = uvicorn.Server(config)

    def until_told():
        sys.stdin.read()
        http.should_exit = True

    threading.Thread(target=until_told, daemon=True).start()
    print(url, flush=True)
    await http.serve(sockets=[listener])
    await server.stop(0)


if __name__ == "__main__":
    options = {"--tls": {"tls": sys.argv[2:]}, "--oauth": {"oauth": "".join(sys.argv[2:])}}
    asyncio.run(main(Obedient(), **options.get("".join(sys.argv[1:2]), {})))
