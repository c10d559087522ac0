"""A client of the Python SDK of A2A 1.0 that says what came in the plain forms of ../matrix/plain.py."""

import uuid

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
from conftest import Credentials
from google.protobuf.json_format import MessageToDict, Parse, ParseDict
from plain import event_of, json_of, task_of


class Client:
    says_final = False
    pushes_tasks = False
    refusal = A2AError
    not_cancelable = "(?i)cancel"

    def __init__(self, live, client):
        self.live, self.client = live, client

    @classmethod
    def of(cls, card, binding, http, channels, key):
        def client(streaming):
            config = ClientConfig(
                httpx_client=http,
                grpc_channel_factory=channels,
                supported_protocol_bindings=[binding],
                streaming=streaming,
            )
            return ClientFactory(config).create(card, [AuthInterceptor(Credentials(key, "bearer"))])

        return cls(client(True), client(False))

    def request(self, parts, wait=True, hook=None, **message):
        message = {"message_id": str(uuid.uuid4()), **message}
        said = ParseDict({"role": "ROLE_USER", "parts": [json_of(part) for part in parts]}, Message())
        said.MergeFrom(Message(**message))
        config = SendMessageConfiguration(return_immediately=not wait)
        if hook:
            config.task_push_notification_config.MergeFrom(TaskPushNotificationConfig(**hook))
        return SendMessageRequest(message=said, configuration=config)

    async def send(self, parts, **how):
        [event] = [event async for event in self.client.send_message(self.request(parts, **how))]
        kind, task = event_of(MessageToDict(event))
        assert kind == "task"
        return task

    async def events(self, parts, **how):
        """What a stream brings, as it comes."""
        async for event in self.live.send_message(self.request(parts, **how)):
            yield event_of(MessageToDict(event))

    async def stream(self, parts, **how):
        return [event async for event in self.events(parts, **how)]

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
