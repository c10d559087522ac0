"""What the hub refuses, and that the SDK recognises each refusal for what it is."""

import uuid

import pytest
from a2a.client import A2AClientError
from a2a.types import (
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest,
    Part,
    TaskPushNotificationConfig,
)
from a2a.utils.errors import (
    A2AError,
    ContentTypeNotSupportedError,
    ExtensionSupportRequiredError,
    InvalidParamsError,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from conftest import drain


UNAUTHENTICATED = "HTTP Error 401|gRPC Error UNAUTHENTICATED"


async def refused(error, *attempts, **how):
    """Each attempt must be refused with this error."""
    try:
        for attempt in attempts:
            with pytest.raises(error, **how):
                await attempt
    finally:
        for attempt in attempts:
            attempt.close()


@pytest.mark.parametrize("task_id", [str(uuid.uuid4()), "no such task"], ids=["uuid", "words"])
async def test_task_not_found(talk, task_id):
    await refused(
        TaskNotFoundError,
        talk.get(task_id),
        talk.cancel(task_id),
        drain(talk.subscribe(task_id)),
        talk.say("hello", task_id=task_id),
        talk.stream("hello", task_id=task_id),
    )


async def test_a_direct_message_is_no_task(talk):
    message = await talk.say("direct")
    listed = await talk.list(context_id=message.context_id)
    assert (len(listed.tasks), listed.total_size) == (0, 0)


@pytest.mark.parametrize("word", ["files", "fail", "reject", "order"])
async def test_an_ended_task_is_closed(talk, word):
    task = await talk.say(word)
    if word == "order":
        task = await talk.cancel(task.id)
    await refused(TaskNotCancelableError, talk.cancel(task.id))
    await refused(
        UnsupportedOperationError,
        talk.say("more", task_id=task.id),
        talk.stream("more", task_id=task.id),
        drain(talk.subscribe(task.id)),
    )
    assert await talk.get(task.id) == task


async def test_a_context_that_is_not_the_tasks(talk):
    asked, elsewhere = await talk.say("order"), await talk.say("files")
    await refused(InvalidParamsError, talk.say("large", task_id=asked.id, context_id=elsewhere.context_id))
    assert await talk.get(asked.id) == asked


async def test_push_where_the_card_denies_it(connect):
    talk = await connect("calm", pretend=["push_notifications"])
    task = await talk.say("hello")
    which = {"task_id": task.id, "id": "hook"}
    url = "https://example.com/hook"
    await refused(
        PushNotificationNotSupportedError,
        talk.client.create_task_push_notification_config(TaskPushNotificationConfig(url=url, **which)),
        talk.client.get_task_push_notification_config(GetTaskPushNotificationConfigRequest(**which)),
        talk.client.list_task_push_notification_configs(ListTaskPushNotificationConfigsRequest(task_id=task.id)),
        talk.client.delete_task_push_notification_config(DeleteTaskPushNotificationConfigRequest(**which)),
        talk.say("files", task_push_notification_config=TaskPushNotificationConfig(url=url)),
    )


async def test_there_is_no_extended_card(connect):
    talk = await connect(pretend=["extended_agent_card"])
    await refused(UnsupportedOperationError, talk.client.get_extended_agent_card(GetExtendedAgentCardRequest()))


async def test_streaming_where_the_card_denies_it(connect):
    talk = await connect("calm", pretend=["streaming"])
    task = await talk.say("hello")
    await refused(UnsupportedOperationError, talk.stream("hello"), drain(talk.subscribe(task.id)))


@pytest.mark.parametrize(
    "part",
    [Part(raw=b"png", media_type="image/png"), Part(text="# hi", media_type="text/markdown")],
    ids=["image", "markdown"],
)
async def test_a_content_type_the_agent_does_not_take(connect, part):
    talk = await connect("texts")
    await refused(ContentTypeNotSupportedError, talk.say("look", part), talk.stream("look", part))
    assert (await talk.say(Part(text="look", media_type="text/plain"))).id


async def test_a_tenant_that_is_not_there_or_not_the_one_of_the_path(connect, binding):
    root, echo = await connect(None), await connect("echo")
    await refused(A2AError, root.say("hello", tenant="nobody"))
    if binding != "GRPC":  # which has no path
        await refused(A2AError, echo.say("hello", tenant="script"))


async def test_an_extension_the_agent_requires(connect):
    talk = await connect("strict")
    await refused(ExtensionSupportRequiredError, talk.say("hello"), talk.stream("hello"))


async def test_parameters_out_of_range(talk):
    task = await talk.say("files")
    await refused(
        InvalidParamsError,
        talk.list(page_size=0),
        talk.list(page_size=-1),
        talk.list(page_size=101),
        talk.list(page_token="nonsense"),
        talk.list(history_length=-1),
        talk.get(task.id, history_length=-1),
        talk.say("files", history_length=-1),
        talk.say(),  # a message without parts
    )


@pytest.mark.parametrize("key", [None, "nonsense", "flk_" + "0" * 64], ids=["none", "nonsense", "unknown"])
async def test_a_wrong_key_is_refused(connect, key):
    talk = await connect(key=key)
    await refused(
        A2AClientError,
        talk.get("some task"),
        talk.list(),
        talk.cancel("some task"),
        talk.say("hello"),
        talk.stream("hello"),
        drain(talk.subscribe("some task")),
        match=UNAUTHENTICATED,
    )


async def test_a_wrong_key_with_a_long_message_is_refused_too(connect):
    """The refusal comes before the body has arrived, and must not cost the caller the connection."""
    talk = await connect(key="nonsense")
    await refused(A2AClientError, *(talk.say("x" * 1_000_000) for _ in range(5)), match=UNAUTHENTICATED)
