"""What a hub makes of a real remote agent that dies, is slow or is not there, and of its own death in mid-call."""

import asyncio
import time

import pytest
from a2a.client import A2ACardResolver
from a2a.types import ListTasksRequest, TaskState
from cells import ENDED, KEY, only, reaches, texts, words
from faulty import PEERS, Hub, Upstream
from plain_client import Client


@pytest.fixture
def upstream(request):
    upstream = Upstream(getattr(request, "param", "python-1.x"))
    yield upstream
    upstream.kill()


@pytest.fixture
def hub(tmp_path, upstream):
    hub = Hub(tmp_path, upstream)
    yield hub
    hub.kill()


@pytest.fixture
def connect(hub, http, channels):
    async def connect(agent="upstream", binding="JSONRPC"):
        card = await A2ACardResolver(http, f"{hub.url}/agents/{agent}").get_agent_card()
        return Client.of(card, binding, http, channels, KEY)

    return connect


async def dripped(client, least):
    """A task of which at least so many chunks have come."""
    started = await client.send(words("drip 20 0.1"), wait=False)
    return await with_chunks(client, started["id"], least)


async def with_chunks(client, task_id, least):
    for _ in range(500):
        task = await client.get(task_id)
        if task["artifacts"] and len(task["artifacts"][0]["parts"]) >= least:
            return task
        assert task["state"] not in ENDED, task
        await asyncio.sleep(0.02)
    raise AssertionError(f"no {least} chunks in ten seconds")


ALL_OF_IT = "".join(f"{n} " for n in range(20))


of_every_make = pytest.mark.parametrize("upstream", PEERS, indirect=True)


@of_every_make
async def test_an_agent_that_dies_in_mid_stream_ends_the_task_with_what_had_come(upstream, hub, connect):
    upstream.start(), hub.start()
    client = await connect()
    seen = []
    async for kind, event in client.events(words("drip 1000 0.05")):
        seen.append((kind, event))
        if sum(kind == "artifact" for kind, _ in seen) == 3:
            upstream.kill()
    kind, last = seen[-1]
    assert (kind, last["state"]) == ("status", "FAILED")
    assert last["said"], "the failure says nothing"
    task = await client.get(seen[0][1]["id"])
    shown = "".join(texts(event["parts"]) for kind, event in seen if kind == "artifact")
    assert (task["state"], texts(only(task["artifacts"])["parts"])) == ("FAILED", shown)
    assert shown.startswith("0 1 2 ")


async def test_an_agent_that_comes_back_without_its_tasks_ends_the_task_truthfully(upstream, hub, connect):
    upstream.start(), hub.start()
    client = await connect()
    task = await dripped(client, 2)
    upstream.kill()
    upstream.start()
    ended = await reaches(client, task["id"], *ENDED, seconds=30)
    assert ended["state"] == "FAILED" and ended["said"]
    assert texts(only(ended["artifacts"])["parts"]).startswith("0 1 ")
    assert (await client.send(words("tell again")))["state"] == "COMPLETED"


async def test_an_agent_that_is_not_there_fails_the_task_and_serves_the_next_once_it_is(upstream, hub, connect):
    upstream.start(), hub.start()
    client = await connect()
    assert (await client.send(words("tell one")))["state"] == "COMPLETED"
    upstream.kill()
    failed = await client.send(words("tell two"))
    assert failed["state"] == "FAILED" and failed["said"]
    upstream.start()
    for _ in range(600):
        task = await client.send(words("tell three"))
        if task["state"] == "COMPLETED":
            break
        await asyncio.sleep(0.05)  # until the breaker lets a call through again
    assert texts(only(task["artifacts"])["parts"]) == "You said tell three"


async def test_a_hub_starts_before_its_agent_does(upstream, hub, connect):
    hub.start()
    upstream.start()
    client = await connect()
    for _ in range(600):
        task = await client.send(words("tell me"))
        if task["state"] == "COMPLETED":
            return
        await asyncio.sleep(0.05)
    raise AssertionError(task)


async def test_a_slow_agent_keeps_nobody_else_waiting(upstream, hub, connect):
    upstream.start(), hub.start()
    client, echo = await connect(), await connect("echo")
    slow = asyncio.create_task(client.send(words("slow 3")))
    began = time.monotonic()
    others = await asyncio.gather(*(echo.send(words("hello")) for _ in range(20)), client.send(words("tell me")))
    assert {task["state"] for task in others} == {"COMPLETED"}
    assert time.monotonic() - began < 2.5 and not slow.done()
    task = await slow
    assert (task["state"], texts(only(task["artifacts"])["parts"])) == ("COMPLETED", "At last")


@of_every_make
async def test_a_hub_killed_in_mid_call_picks_the_task_up_and_loses_and_repeats_nothing(upstream, hub, connect):
    upstream.start(), hub.start()
    client = await connect()
    task = await dripped(client, 3)
    hub.kill()
    hub.start()
    ended = await reaches(client, task["id"], *ENDED, seconds=30)
    assert ended["state"] == "COMPLETED", ended
    assert texts(only(ended["artifacts"])["parts"]) == ALL_OF_IT
    assert [texts(message["parts"]) for message in ended["history"] if message["role"] == "user"] == ["drip 20 0.1"]


async def until_done(upstream, http, channels):
    """Asks the agent itself."""
    card = await A2ACardResolver(http, upstream.url).get_agent_card()
    client = Client.of(card, "JSONRPC", http, channels, KEY).client
    for _ in range(500):
        tasks = (await client.list_tasks(ListTasksRequest())).tasks
        if tasks and all(task.status.state == TaskState.TASK_STATE_COMPLETED for task in tasks):
            return
        await asyncio.sleep(0.02)
    raise AssertionError("the agent is not done in ten seconds")


async def test_what_ended_while_the_hub_was_down_is_complete_afterwards(upstream, hub, connect, http, channels):
    upstream.start(), hub.start()
    client = await connect()
    task = await dripped(client, 1)
    hub.kill()
    await until_done(upstream, http, channels)
    hub.start()
    ended = await reaches(client, task["id"], *ENDED, seconds=30)
    assert (ended["state"], texts(only(ended["artifacts"])["parts"])) == ("COMPLETED", ALL_OF_IT)


async def test_a_task_of_a_hub_that_was_killed_can_be_canceled_and_the_agent_is_told(upstream, hub, connect):
    upstream.start(), hub.start()
    client = await connect()
    started = await client.send(words("hold fast"), wait=False)
    await reaches(client, started["id"], "WORKING")
    hub.kill()
    hub.start()
    canceled = await client.cancel(started["id"])
    assert canceled["state"] == "CANCELED"
    told = await client.send(words("canceled fast"))
    assert texts(only(told["artifacts"])["parts"]) == "yes"


async def test_hub_and_agent_killed_together_end_the_task_truthfully(upstream, hub, connect):
    upstream.start(), hub.start()
    client = await connect()
    task = await dripped(client, 2)
    hub.kill()
    upstream.kill()
    upstream.start()
    hub.start()
    ended = await reaches(client, task["id"], *ENDED, seconds=30)
    assert ended["state"] == "FAILED" and ended["said"]
    assert texts(only(ended["artifacts"])["parts"]).startswith("0 1 ")
