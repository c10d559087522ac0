"""Push notifications: set up with the SDK, received here, and verified by programs that are not ours."""

import base64
import time

import pytest
from a2a.types import (
    AuthenticationInfo,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest,
    StreamResponse,
    TaskPushNotificationConfig,
)
from a2a.utils.errors import InvalidParamsError, TaskNotFoundError
from conftest import URL
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from google.protobuf.json_format import Parse
from receiver import Receiver
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="


@pytest.fixture
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.close()


async def test_a_message_brings_its_webhook_along(talk, receiver):
    config = TaskPushNotificationConfig(url=receiver.url, token="t-1")
    task = await talk.say("stream", task_push_notification_config=config)
    received = receiver.wait(6)
    assert receiver.told()[0] == "TASK_STATE_SUBMITTED" and receiver.told()[-1] == "TASK_STATE_COMPLETED"
    for headers, body in received:
        assert headers["content-type"] == "application/a2a+json"
        assert headers["x-a2a-notification-token"] == "t-1"
        event = Parse(body, StreamResponse())  # the SDK's own form of it
        update = getattr(event, event.WhichOneof("payload"))
        assert task.id in (getattr(update, "task_id", ""), getattr(update, "id", ""))


async def test_configs_are_made_read_listed_and_deleted(talk, receiver):
    task = await talk.say("order")
    auth = AuthenticationInfo(scheme="Bearer", credentials="c-secret")
    config = TaskPushNotificationConfig(
        task_id=task.id, id="one", url=receiver.url, token="t-secret", authentication=auth
    )
    made = await talk.client.create_task_push_notification_config(config)
    which = {"task_id": task.id, "id": "one"}
    got = await talk.client.get_task_push_notification_config(GetTaskPushNotificationConfigRequest(**which))
    listing = ListTaskPushNotificationConfigsRequest(task_id=task.id)
    listed = await talk.client.list_task_push_notification_configs(listing)
    assert got == made and list(listed.configs) == [made]
    assert (made.id, made.url, made.token, made.authentication.credentials) == ("one", receiver.url, "", "")
    await talk.say("large", task_id=task.id)
    headers, _ = receiver.wait(1)[0]
    assert headers["authorization"] == "Bearer c-secret"
    for _ in range(2):
        await talk.client.delete_task_push_notification_config(DeleteTaskPushNotificationConfigRequest(**which))
    with pytest.raises(TaskNotFoundError):
        await talk.client.get_task_push_notification_config(GetTaskPushNotificationConfigRequest(**which))
    assert not (await talk.client.list_task_push_notification_configs(listing)).configs


async def test_a_url_that_leads_inside_is_refused(talk):
    task = await talk.say("order")
    for url in ["https://169.254.169.254/latest", "https://[::1]/", "http://10.0.0.1/", "https://[::ffff:10.0.0.1]/"]:
        with pytest.raises(InvalidParamsError):
            config = TaskPushNotificationConfig(task_id=task.id, url=url)
            await talk.client.create_task_push_notification_config(config)


async def test_signatures_hold_before_an_independent_verifier(talk, receiver):
    config = TaskPushNotificationConfig(url=receiver.url, token=f"{SECRET} {OTHER}")
    await talk.say("stream", task_push_notification_config=config)
    for headers, body in receiver.wait(6):
        for secret in (SECRET, OTHER):  # either one: that is how a secret is exchanged for another
            Webhook(secret).verify(body, headers)
        with pytest.raises(WebhookVerificationError):
            Webhook(SECRET).verify(body + b" ", headers)
        with pytest.raises(WebhookVerificationError):
            Webhook("whsec_" + base64.b64encode(b"x" * 24).decode()).verify(body, headers)
        assert abs(int(headers["webhook-timestamp"]) - time.time()) < 60
        assert "whsec_" not in str(headers)
    ids = [headers["webhook-id"] for headers, _ in receiver.received]
    assert len(set(ids)) == len(ids)


async def test_the_hubs_key_is_published_and_verifies(talk, receiver, http):
    await talk.say("stream", task_push_notification_config=TaskPushNotificationConfig(url=receiver.url))
    keys = (await http.get(f"{URL}/.well-known/jwks.json")).json()["keys"]
    # The others sign cards.
    [key] = [key for key in keys if key["kty"] == "OKP"]
    assert (key["kty"], key["crv"], key["alg"]) == ("OKP", "Ed25519", "EdDSA")
    public = Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(key["x"] + "=="))
    for headers, body in receiver.wait(6):
        version, signature = headers["webhook-signature"].split(",", 1)
        assert version == "v1a"
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        public.verify(base64.b64decode(signature), signed)
        with pytest.raises(InvalidSignature):
            public.verify(base64.b64decode(signature), signed + b" ")
