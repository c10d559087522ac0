"""The cells of the matrix, written once for both Python SDKs: what every client must see of every agent.

A test module of an SDK imports all of this, and adds the fixture `connect`: it makes a client of an agent, which does
things the way of that SDK and says what came of them in the forms of plain.py.
"""

import asyncio
import os
import time
import uuid

import pytest
from receiver import Receiver

URL = os.environ["FLOTILLA_URL"]
KEY = os.environ["FLOTILLA_OWNER_KEY"]
BINDINGS = ["JSONRPC", "HTTP+JSON", "GRPC"]
# Those that do what README.md says, and of them those that are elsewhere. Beside them there is echo.
REMOTE = ["remote-python-1.x", "remote-python-0.3", "remote-javascript-1.x"]
OBEDIENT = ["script", *REMOTE]
every_agent = pytest.mark.parametrize("agent", ["echo", *OBEDIENT])

ENDED = ["COMPLETED", "FAILED", "CANCELED", "REJECTED"]
SENT = [
    {"raw": b"\x00\xffbytes", "filename": "sent.bin", "mediaType": "application/octet-stream"},
    {"url": "https://example.com/sent.png", "filename": "sent.png", "mediaType": "image/png"},
    {"data": {"whole": 7, "half": 0.5, "list": [None, True, "ünïcode"], "deep": {"er": {}}}},
]
FILES = [
    {"text": "a text", "metadata": {"kind": "note"}},
    {"raw": b"\x00\x01\x02\xff", "filename": "blob.bin", "mediaType": "application/octet-stream"},
    {"url": "https://example.com/a.png", "filename": "a.png", "mediaType": "image/png"},
    {"data": {"nested": {"list": [1, 2.5, "three", None, True]}}},
]


def words(text):
    return [{"text": text}]


def texts(parts):
    return "".join(part.get("text", "") for part in parts)


def only(things):
    [thing] = things
    return thing


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture(params=BINDINGS)
def binding(request):
    return request.param


async def reaches(client, task_id, *states, seconds=10):
    deadline = time.monotonic() + seconds
    while (task := await client.get(task_id))["state"] not in states:
        assert time.monotonic() < deadline, f"still {task['state']}"
        await asyncio.sleep(0.02)
    return task


def check_answer(agent, task, text, message_id):
    """The task that a plain word must end in."""
    assert task["state"] == "COMPLETED"
    artifact = only(task["artifacts"])
    assert artifact["parts"] == words(text if agent == "echo" else f"You said {text}")
    assert artifact["name"] == ("echo" if agent == "echo" else "reply")
    assert task["said"] == (None if agent == "echo" else "Done")
    asked = task["history"][0]
    assert (asked["id"], asked["role"], asked["parts"]) == (message_id, "user", words(text))
    assert (asked["task_id"], asked["context_id"]) == (task["id"], task["context_id"])


def check_stream(agent, events, text):
    """Task first, then what happens in order, all of one task, and the end last."""
    assert events[0][0] == "task"
    task = events[0][1]
    assert task["state"] in ("SUBMITTED", "WORKING")
    rest = events[1:]
    assert {(event["task_id"], event["context_id"]) for _, event in rest} == {(task["id"], task["context_id"])}
    chunks = [event for kind, event in rest if kind == "artifact"]
    states = [event["state"] for kind, event in rest if kind == "status"]
    assert (rest[-1][0], states[-1]) == ("status", "COMPLETED")
    assert not set(states[:-1]) & set(ENDED)
    if agent == "echo":
        assert (texts(only(chunks)["parts"]), only(chunks)["append"]) == (text, False)
    else:
        shown = [(chunk["id"], texts(chunk["parts"]), chunk["append"], chunk["last"]) for chunk in chunks]
        assert shown == [("story", "one ", False, False), ("story", "two ", True, False), ("story", "three", True, True)]
        assert [event["said"] for kind, event in rest if kind == "status"][-2:] == ["Streaming", "Streamed"]
    return task


@every_agent
async def test_send(agent, connect):
    client = await connect(agent)
    text, message_id = f"tell me {uuid.uuid4()}", str(uuid.uuid4())
    task = await client.send(words(text), message_id=message_id)
    check_answer(agent, task, text, message_id)
    assert await client.get(task["id"]) == task


@every_agent
async def test_stream(agent, connect):
    client = await connect(agent)
    events = await client.stream(words("stream please"))
    task = check_stream(agent, events, "stream please")
    if client.says_final:
        finals = [event["final"] for kind, event in events if kind == "status"]
        assert finals == [False] * (len(finals) - 1) + [True]
    kept = await client.get(task["id"])
    whole = "stream please" if agent == "echo" else "one two three"
    assert (kept["state"], texts(only(kept["artifacts"])["parts"])) == ("COMPLETED", whole)


@every_agent
async def test_multi_turn(agent, connect):
    client = await connect(agent)
    if agent == "echo":
        return await turns_of_echo(client)
    asked = await client.send(words("order a pizza"))
    assert (asked["state"], asked["said"]) == ("INPUT_REQUIRED", "Which size?")
    done = await client.send(words("large"), task_id=asked["id"], context_id=asked["context_id"])
    assert (done["id"], done["context_id"]) == (asked["id"], asked["context_id"])
    assert (done["state"], done["said"]) == ("COMPLETED", "Here you are")
    assert only(done["artifacts"])["parts"] == [{"data": {"size": "large", "turn": "2"}}]
    said = [texts(message["parts"]) for message in done["history"]]
    assert said[:3] == ["order a pizza", "Which size?", "large"]
    following = await client.send(words("tell more"), context_id=asked["context_id"])
    assert following["context_id"] == asked["context_id"] and following["id"] != asked["id"]
    assert texts(only(following["artifacts"])["parts"]) == "You said tell more"


async def turns_of_echo(client):
    """It asks nothing: a second message goes on in the same context, and none in a task that has ended."""
    first = await client.send(words("one"))
    second = await client.send(words("two"), context_id=first["context_id"])
    assert second["context_id"] == first["context_id"] and second["id"] != first["id"]
    assert texts(only(second["artifacts"])["parts"]) == "two"
    with pytest.raises(client.refusal):
        await client.send(words("three"), task_id=first["id"], context_id=first["context_id"])


@every_agent
async def test_cancel(agent, connect):
    client = await connect(agent)
    mark = uuid.uuid4().hex
    started = await client.send(words(f"hold {mark}"), wait=False)
    if agent == "echo":  # which is done before anybody can stop it
        await reaches(client, started["id"], "COMPLETED")
    else:
        assert (await reaches(client, started["id"], "WORKING", *ENDED))["state"] == "WORKING"
        canceled = await client.cancel(started["id"])
        assert (canceled["id"], canceled["state"]) == (started["id"], "CANCELED")
        assert (await client.get(started["id"]))["state"] == "CANCELED"
    with pytest.raises(client.refusal, match=client.not_cancelable):
        await client.cancel(started["id"])
    if agent in REMOTE:  # it is the agent itself that was told
        told = await client.send(words(f"canceled {mark}"))
        assert texts(only(told["artifacts"])["parts"]) == "yes"


@every_agent
async def test_file_and_data_parts(agent, connect):
    client = await connect(agent)
    word = "mirror" if agent in REMOTE else "files"
    task = await client.send([*words(word), *SENT])
    assert task["history"][0]["parts"] == [*words(word), *SENT]
    back = only(task["artifacts"])["parts"]
    match agent:
        case "echo":
            assert back == [*words(word), *SENT]
        case "script":
            assert back == FILES
        case _:
            assert back == SENT
            made = only((await client.send(words("files")))["artifacts"])
            assert (made["id"], made["parts"]) == ("files", FILES)
    assert await client.get(task["id"]) == task


@every_agent
async def test_push(agent, connect, receiver):
    client = await connect(agent)
    task = await client.send(words("stream"), hook={"url": receiver.url, "token": "t-1"})
    shown = [client.webhook(body) for body in receiver.until(lambda body: ended(client.webhook(body)))]
    assert {task_id_in(event) for event in shown} == {task["id"]}
    assert all(headers["x-a2a-notification-token"] == "t-1" for headers, _ in receiver.received)
    if client.pushes_tasks:
        whole = texts(only(shown[-1][1]["artifacts"])["parts"])
    else:
        whole = "".join(texts(value["parts"]) for kind, value in shown if kind == "artifact")
    assert whole == ("stream" if agent == "echo" else "one two three")
    if agent in OBEDIENT:
        await push_of_a_later_turn(client)


async def push_of_a_later_turn(client):
    """A config made for a task that exists, read back, and told of what follows."""
    asked = await client.send(words("order"))
    receiver = Receiver()
    try:
        made = await client.set_hook(asked["id"], {"id": "later", "url": receiver.url})
        assert made == await client.get_hook(asked["id"], "later") == {"id": "later", "url": receiver.url}
        await client.send(words("small"), task_id=asked["id"], context_id=asked["context_id"])
        shown = [client.webhook(body) for body in receiver.until(lambda body: ended(client.webhook(body)))]
        assert {task_id_in(event) for event in shown} == {asked["id"]}
    finally:
        receiver.close()


def ended(event):
    return event[1].get("state") in ENDED


def task_id_in(event):
    kind, value = event
    return value["id"] if kind == "task" else value["task_id"]
