"""What the tests share: clients of the official Python SDK over each transport, and short ways to talk."""

import asyncio
import os
import ssl
import time
import uuid

import grpc
import httpx
import pytest
from a2a.client import A2ACardResolver, AuthInterceptor, ClientConfig, ClientFactory, CredentialService
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskState,
)

# Failed checks of the shared cells are shown with their values too.
pytest.register_assert_rewrite("cells", "plain")

URL = os.environ["FLOTILLA_URL"]
KEY = os.environ["FLOTILLA_OWNER_KEY"]
OTHER_KEY = os.environ["FLOTILLA_OTHER_KEY"]
TLS = ssl.create_default_context()  # made once: loading the certificates takes long

ENDED = {
    TaskState.TASK_STATE_COMPLETED,
    TaskState.TASK_STATE_FAILED,
    TaskState.TASK_STATE_CANCELED,
    TaskState.TASK_STATE_REJECTED,
}


class Credentials(CredentialService):
    """Gives one key for one of the security schemes on the card."""

    def __init__(self, key, scheme):
        self.key, self.scheme = key, scheme

    async def get_credentials(self, security_scheme_name, context):
        return self.key if security_scheme_name == self.scheme else None


class Talk:
    """An agent as the SDK sees it: a client that streams, one that does not, and messages made from plain words."""

    def __init__(self, live, client):
        self.live, self.client = live, client

    async def events(
        self, streaming, *parts, message_id=None, task_id="", context_id="", tenant="", call=None, **config
    ):
        """Sends, and returns all that is answered."""
        message = Message(
            message_id=message_id or str(uuid.uuid4()),
            role=Role.ROLE_USER,
            parts=[Part(text=part) if isinstance(part, str) else part for part in parts],
            task_id=task_id,
            context_id=context_id,
        )
        request = SendMessageRequest(message=message, tenant=tenant, configuration=config)
        client = self.live if streaming else self.client
        return [event async for event in client.send_message(request, context=call)]

    async def say(self, *parts, **how):
        """Sends without streaming, and returns the task or the message."""
        [event] = await self.events(False, *parts, **how)
        return getattr(event, event.WhichOneof("payload"))

    async def stream(self, *parts, **how):
        return await self.events(True, *parts, **how)

    def subscribe(self, task_id):
        return self.live.subscribe(SubscribeToTaskRequest(id=task_id))

    async def cancel(self, task_id):
        return await self.client.cancel_task(CancelTaskRequest(id=task_id))

    async def get(self, task_id, **how):
        return await self.client.get_task(GetTaskRequest(id=task_id, **how))

    async def list(self, **how):
        return await self.client.list_tasks(ListTasksRequest(**how))

    async def reaches(self, task_id, *states, seconds=10):
        """Polls until the task is in one of the states."""
        deadline = time.monotonic() + seconds
        while (task := await self.get(task_id)).status.state not in states:
            assert time.monotonic() < deadline, f"still {TaskState.Name(task.status.state)}"
            await asyncio.sleep(0.02)
        return task


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(params=["JSONRPC", "HTTP+JSON", "GRPC"])
def binding(request):
    return request.param


@pytest.fixture
async def http():
    async with httpx.AsyncClient(timeout=10, verify=TLS) as client:
        yield client


@pytest.fixture
async def channels():
    """gRPC channels, closed before the test's event loop is."""
    opened = []

    def open_channel(address):
        opened.append(grpc.aio.insecure_channel(address))
        return opened[-1]

    yield open_channel
    for channel in opened:
        await channel.close()


@pytest.fixture
def connect(binding, http, channels):
    """Resolves an agent's card and makes clients from it; `pretend` sets capabilities that the card denies."""

    async def connect(agent="script", key=KEY, scheme="bearer", pretend=(), binding=binding):
        card = await resolve(http, agent)
        for capability in pretend:
            setattr(card.capabilities, capability, True)

        def client(streaming):
            config = ClientConfig(
                httpx_client=http,
                grpc_channel_factory=channels,
                supported_protocol_bindings=[binding],
                streaming=streaming,
            )
            return ClientFactory(config).create(card, [AuthInterceptor(Credentials(key, scheme))])

        return Talk(client(True), client(False))

    return connect


@pytest.fixture
async def talk(connect):
    return await connect()


async def resolve(http, agent):
    """The card of an agent, or of the hub itself where the agent is None."""
    return await A2ACardResolver(http, f"{URL}/agents/{agent}" if agent else URL).get_agent_card()


async def drain(stream):
    return [event async for event in stream]


def texts(parts):
    return [part.text for part in parts]


def kinds(events):
    """What a stream held: the state of each task and status update, and the text of each artifact update."""
    said = []
    for event in events:
        match event.WhichOneof("payload"):
            case "task":
                said.append(("task", TaskState.Name(event.task.status.state)))
            case "status_update":
                said.append(("status", TaskState.Name(event.status_update.status.state)))
            case "artifact_update":
                said.append(("artifact", "".join(texts(event.artifact_update.artifact.parts))))
            case "message":
                said.append(("message", "".join(texts(event.message.parts))))
    return said
