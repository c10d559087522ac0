"""The matrix with the Python SDK of A2A 1.0 as the client; the cells are in ../matrix."""

import uuid

import pytest
from a2a.client import AuthInterceptor, ClientConfig, ClientFactory
from a2a.types import (
    CancelTaskRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    Message,
    SendMessageConfiguration,
    SendMessageRequest,
    StreamResponse,
    TaskPushNotificationConfig,
)
from a2a.utils.errors import A2AError
from cells import *  # noqa: F403
from cells import KEY, as_json
from conftest import Credentials, resolve
from google.protobuf.json_format import MessageToDict, Parse, ParseDict
from plain import event_of, task_of


class Client:
    says_final = False
    pushes_tasks = False
    refusal = A2AError
    not_cancelable = "(?i)cancel"

    def __init__(self, live, client):
        self.live, self.client = live, client

    async def answers(self, client, parts, wait=True, hook=None, **message):
        message = {"message_id": str(uuid.uuid4()), **message}
        said = ParseDict({"role": "ROLE_USER", "parts": [as_json(part) for part in parts]}, Message())
        said.MergeFrom(Message(**message))
        config = SendMessageConfiguration(return_immediately=not wait)
        if hook:
            config.task_push_notification_config.MergeFrom(TaskPushNotificationConfig(**hook))
        request = SendMessageRequest(message=said, configuration=config)
        return [event_of(MessageToDict(event)) async for event in client.send_message(request)]

    async def send(self, parts, **how):
        [(kind, task)] = await self.answers(self.client, parts, **how)
        assert kind == "task"
        return task

    async def stream(self, parts, **how):
        return await self.answers(self.live, parts, **how)

    async def get(self, task_id):
        return task_of(MessageToDict(await self.client.get_task(GetTaskRequest(id=task_id))))

    async def cancel(self, task_id):
        return task_of(MessageToDict(await self.client.cancel_task(CancelTaskRequest(id=task_id))))

    async def set_hook(self, task_id, hook):
        config = TaskPushNotificationConfig(task_id=task_id, **hook)
        made = await self.client.create_task_push_notification_config(config)
        return {"id": made.id, "url": made.url}

    async def get_hook(self, task_id, id):
        which = GetTaskPushNotificationConfigRequest(task_id=task_id, id=id)
        found = await self.client.get_task_push_notification_config(which)
        return {"id": found.id, "url": found.url}

    @staticmethod
    def webhook(body):
        return event_of(MessageToDict(Parse(body, StreamResponse())))


@pytest.fixture(params=["a2a-sdk-1.x"])
def connect(request, binding, http, channels):
    async def connect(agent):
        card = await resolve(http, agent)

        def client(streaming):
            config = ClientConfig(
                httpx_client=http,
                grpc_channel_factory=channels,
                supported_protocol_bindings=[binding],
                streaming=streaming,
            )
            return ClientFactory(config).create(card, [AuthInterceptor(Credentials(KEY, "bearer"))])

        return Client(client(True), client(False))

    return connect
