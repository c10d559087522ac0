"""The matrix with the Python SDK of A2A 0.3 as the client; the cells are in ../matrix.

This SDK has no receiver of webhooks: bodies are read with its own type, Task. Only its JSON-RPC transport calls
interceptors: elsewhere the key goes with the HTTP client and the gRPC channel, and with the latter the name of the
agent, for which 0.3 has no field.
"""

import uuid

import grpc
import httpx
import pytest
from a2a.client import A2ACardResolver, AuthInterceptor, ClientConfig, ClientFactory, CredentialService
from a2a.client.errors import A2AClientError
from a2a.types import (
    GetTaskPushNotificationConfigParams,
    Message,
    MessageSendConfiguration,
    PushNotificationConfig,
    Task,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskQueryParams,
)
from cells import *  # noqa: F403
from cells import KEY, URL
from plain import event_of, json_of, task_of


class Key(CredentialService):
    async def get_credentials(self, security_scheme_name, context):
        return KEY if security_scheme_name == "bearer" else None


def part_in_03(part):
    """A plain part in the JSON form of 0.3."""
    if "raw" in part or "url" in part:
        names = {"raw": "bytes", "url": "uri", "filename": "name", "mediaType": "mimeType"}
        return {"kind": "file", "file": {names[name]: value for name, value in json_of(part).items()}}
    return {"kind": "text" if "text" in part else "data", **part}


def dumped(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


class Client:
    says_final = True
    pushes_tasks = True
    refusal = (A2AClientError, grpc.aio.AioRpcError)
    not_cancelable = "(?i)cancel"

    def __init__(self, make):
        """`make` gives a client of the SDK that streams or not, and has these webhooks told of every task."""
        self.make, self.live, self.client = make, make(True, []), make(False, [])

    def asked(self, parts, wait=True, **message):
        names = {"message_id": "messageId", "task_id": "taskId", "context_id": "contextId"}
        message = {"messageId": str(uuid.uuid4()), **{names[name]: value for name, value in message.items()}}
        said = {"kind": "message", "role": "user", "parts": [part_in_03(part) for part in parts], **message}
        return {"request": Message.model_validate(said), "configuration": MessageSendConfiguration(blocking=wait)}

    async def send(self, parts, hook=None, **how):
        client = self.make(False, [PushNotificationConfig(**hook)]) if hook else self.client
        [(task, update)] = [event async for event in client.send_message(**self.asked(parts, **how))]
        assert isinstance(task, Task) and update is None
        return task_of(dumped(task))

    async def stream(self, parts, **how):
        # Read as they come: the SDK folds later updates into the task that it handed out first.
        return [
            event_of(dumped(update or task))
            async for task, update in self.live.send_message(**self.asked(parts, **how))
        ]

    async def get(self, task_id):
        return task_of(dumped(await self.client.get_task(TaskQueryParams(id=task_id))))

    async def cancel(self, task_id):
        return task_of(dumped(await self.client.cancel_task(TaskIdParams(id=task_id))))

    async def set_hook(self, task_id, hook):
        config = TaskPushNotificationConfig(task_id=task_id, push_notification_config=PushNotificationConfig(**hook))
        made = (await self.client.set_task_callback(config)).push_notification_config
        return {"id": made.id, "url": made.url}

    async def get_hook(self, task_id, id):
        which = GetTaskPushNotificationConfigParams(id=task_id, push_notification_config_id=id)
        found = (await self.client.get_task_callback(which)).push_notification_config
        return {"id": found.id, "url": found.url}

    @staticmethod
    def webhook(body):
        return "task", task_of(dumped(Task.model_validate_json(body)))


class Metadata:
    """What goes along with every gRPC call."""

    def __init__(self, metadata):
        self.metadata = list(metadata.items())

    def added(self, details):
        return details._replace(metadata=grpc.aio.Metadata(*(details.metadata or []), *self.metadata))


class WithAnswers(Metadata, grpc.aio.UnaryUnaryClientInterceptor):
    async def intercept_unary_unary(self, proceed, details, request):
        return await proceed(self.added(details), request)


class WithStreams(Metadata, grpc.aio.UnaryStreamClientInterceptor):
    async def intercept_unary_stream(self, proceed, details, request):
        return await proceed(self.added(details), request)


@pytest.fixture
async def http(binding):
    key = {"Authorization": f"Bearer {KEY}"} if binding == "HTTP+JSON" else {}
    async with httpx.AsyncClient(timeout=10, headers=key) as client:
        yield client


@pytest.fixture(params=["a2a-sdk-0.3"])
async def connect(request, binding, http):
    opened = []

    async def connect(agent):
        # Clients of 0.3 name no agent over gRPC, so only the hub's own card lists it. This client adds `agent-name`.
        place = URL if binding == "GRPC" else f"{URL}/agents/{agent}"
        # Below an agent the hub shows its card in the form of 1.0, unless it is asked for another.
        asking = {"headers": {"A2A-Version": "0.3"}}
        card = await A2ACardResolver(http, place).get_agent_card(http_kwargs=asking)

        def channel(address):
            metadata = {"authorization": f"Bearer {KEY}", "agent-name": agent}
            interceptors = [WithAnswers(metadata), WithStreams(metadata)]
            opened.append(grpc.aio.insecure_channel(address, interceptors=interceptors))
            return opened[-1]

        def make(streaming, hooks):
            config = ClientConfig(
                httpx_client=http,
                grpc_channel_factory=channel,
                supported_transports=[binding],
                streaming=streaming,
                push_notification_configs=hooks,
            )
            return ClientFactory(config).create(card, interceptors=[AuthInterceptor(Key())])

        return Client(make)

    yield connect
    for channel in opened:
        await channel.close()
