"""Sending: blocking, at once, streaming, turn by turn, again, and with parts of every kind."""

import asyncio
import uuid

import pytest
from a2a.client import ClientCallContext
from a2a.client.service_parameters import ServiceParametersFactory, with_a2a_extensions
from a2a.types import Part, Role, TaskState
from conftest import ENDED, OTHER_KEY, kinds, texts
from google.protobuf import json_format, struct_pb2

either_way = pytest.mark.parametrize("streaming", [False, True], ids=["plain", "streaming"])


def data(value):
    return json_format.ParseDict(value, struct_pb2.Value())


async def test_a_blocking_send_returns_the_ended_task(talk):
    task = await talk.say("slow 100ms")
    assert task.status.state == TaskState.TASK_STATE_COMPLETED
    assert texts(task.status.message.parts) == ["Done"]
    assert [(a.name, texts(a.parts)) for a in task.artifacts] == [("result", ["At last"])]
    assert task.id and task.context_id
    assert await talk.get(task.id) == task


async def test_return_immediately_does_not_wait(talk):
    task = await talk.say("slow 500ms", return_immediately=True)
    assert task.status.state not in ENDED
    ended = await talk.reaches(task.id, *ENDED)
    assert ended.status.state == TaskState.TASK_STATE_COMPLETED
    assert texts(ended.artifacts[0].parts) == ["At last"]


async def test_a_stream_shows_each_step_in_order(talk):
    events = await talk.stream("stream")
    assert kinds(events) == [
        ("task", "TASK_STATE_SUBMITTED"),
        ("status", "TASK_STATE_WORKING"),
        ("artifact", "one "),
        ("artifact", "two "),
        ("artifact", "three"),
        ("status", "TASK_STATE_COMPLETED"),
    ]
    first = events[0].task
    chunks = [e.artifact_update for e in events if e.HasField("artifact_update")]
    assert [(c.append, c.last_chunk) for c in chunks] == [(False, False), (True, False), (True, True)]
    assert {c.artifact.artifact_id for c in chunks} == {"story"}
    updates = chunks + [e.status_update for e in events if e.HasField("status_update")]
    assert {(u.task_id, u.context_id) for u in updates} == {(first.id, first.context_id)}
    task = await talk.get(first.id)
    assert "".join(texts(task.artifacts[0].parts)) == "one two three"


async def test_an_agent_that_does_not_stream_answers_all_the_same(connect):
    [event] = await (await connect("calm")).stream("hello")
    assert event.task.status.state == TaskState.TASK_STATE_COMPLETED


@either_way
async def test_a_conversation_goes_on_in_the_same_task(talk, streaming):
    [first, *_] = await talk.events(streaming, "order a pizza")
    asked = await talk.get(first.task.id)
    assert asked.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
    assert texts(asked.status.message.parts) == ["Which size?"]
    [first, *_] = await talk.events(streaming, "large", task_id=asked.id, context_id=asked.context_id)
    assert (first.task.id, first.task.context_id) == (asked.id, asked.context_id)
    done = await talk.get(asked.id)
    assert done.status.state == TaskState.TASK_STATE_COMPLETED
    assert json_format.MessageToDict(done.artifacts[0].parts[0].data) == {"size": "large", "turn": "2"}


async def test_the_context_follows_from_the_task(talk):
    asked = await talk.say("order")
    done = await talk.say("small", task_id=asked.id)
    assert (done.id, done.context_id) == (asked.id, asked.context_id)


async def test_a_context_can_hold_several_tasks(talk):
    first = await talk.say("files")
    second = await talk.say("files", context_id=first.context_id)
    assert second.id != first.id
    assert second.context_id == first.context_id


async def test_auth_required_interrupts_a_blocking_send(talk):
    assert (await talk.say("login")).status.state == TaskState.TASK_STATE_AUTH_REQUIRED


@either_way
async def test_a_direct_message_instead_of_a_task(talk, streaming):
    [event] = await talk.events(streaming, "direct talk")
    assert event.WhichOneof("payload") == "message"
    assert event.message.role == Role.ROLE_AGENT
    assert event.message.parts[0].text == "You said direct talk"
    assert json_format.MessageToDict(event.message.parts[1].data) == {"direct": True}


PARTS = [
    Part(text='Grüße, 世界 🌍\n"quoted"', media_type="text/plain", metadata={"lang": "de", "n": 1}),
    Part(raw=bytes(range(256)), filename="all bytes.bin", media_type="application/octet-stream"),
    Part(url="https://example.com/a%20b?c=d", filename="a b.png", media_type="image/png"),
    Part(data=data({"deep": [{"int": 9007199254740991, "float": 0.1, "none": None}, [], {}, "", False]})),
    Part(data=data("a bare string"), media_type="application/json"),
    Part(data=data(None)),
    Part(text=""),
]


@either_way
async def test_parts_of_every_kind_come_back_unchanged(connect, streaming):
    talk = await connect("echo")
    events = await talk.events(streaming, *PARTS)
    if streaming:
        [update] = [e.artifact_update for e in events if e.HasField("artifact_update")]
        assert list(update.artifact.parts) == PARTS
    task = await talk.get(events[0].task.id)
    assert list(task.artifacts[0].parts) == PARTS
    assert list(task.history[0].parts) == PARTS
    assert task.history[0].role == Role.ROLE_USER


async def test_an_agents_own_files_and_data_arrive(talk):
    task = await talk.say("files")
    assert list(task.artifacts[0].parts) == [
        Part(text="a text", media_type="text/markdown", metadata={"kind": "note"}),
        Part(raw=b"\x00\x01\x02\xff", filename="blob.bin", media_type="application/octet-stream"),
        Part(url="https://example.com/a.png", filename="a.png", media_type="image/png"),
        Part(data=data({"nested": {"list": [1, 2.5, "three", None, True]}})),
    ]


@either_way
@pytest.mark.parametrize(
    ("word", "state", "why"),
    [("fail", "TASK_STATE_FAILED", "This went wrong"), ("reject", "TASK_STATE_REJECTED", "I do not want to")],
)
async def test_a_task_that_ends_badly_says_why(talk, word, state, why, streaming):
    events = await talk.events(streaming, word)
    assert kinds(events)[-1] == ("status" if streaming else "task", state)
    task = await talk.get(events[0].task.id)
    assert (TaskState.Name(task.status.state), texts(task.status.message.parts)) == (state, [why])


async def test_the_same_message_id_is_the_same_task(talk):
    message_id = str(uuid.uuid4())
    first = await talk.say("files", message_id=message_id)
    assert await talk.say("files", message_id=message_id) == first
    streamed = await talk.stream("files", message_id=message_id)
    assert streamed[0].task.id == first.id


async def test_a_resend_joins_the_running_task(talk):
    message_id = str(uuid.uuid4())
    first = await talk.say("slow 500ms", message_id=message_id, return_immediately=True)
    again = await asyncio.gather(*(talk.say("slow 500ms", message_id=message_id) for _ in range(3)))
    assert {task.id for task in again} == {first.id}
    assert {task.status.state for task in again} == {TaskState.TASK_STATE_COMPLETED}


async def test_another_keys_same_message_id_is_another_task(connect, talk):
    message_id = str(uuid.uuid4())
    mine = await talk.say("files", message_id=message_id)
    theirs = await (await connect(key=OTHER_KEY)).say("files", message_id=message_id)
    assert mine.id != theirs.id


async def test_a_named_extension_opens_the_strict_agent(connect):
    parameters = ServiceParametersFactory.create([with_a2a_extensions(["urn:example:ext:strict"])])
    task = await (await connect("strict")).say("hello", call=ClientCallContext(service_parameters=parameters))
    assert task.status.state == TaskState.TASK_STATE_COMPLETED


async def test_the_key_may_come_as_an_api_key(connect):
    task = await (await connect("echo", scheme="apiKey")).say("hello")
    assert task.status.state == TaskState.TASK_STATE_COMPLETED
