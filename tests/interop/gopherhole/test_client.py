"""GopherHole's published Python client, unmodified, as a caller and as an agent."""

import asyncio
import json

import httpx
import pytest
from conftest import URL, client, running, until
from gopherhole import GopherHole
from gopherhole.types import DataPart, FilePart, MessagePayload, SendOptions, TextPart


def greeter(**options):
    """An agent that answers every message, as the client's documentation shows it."""
    agent = client(agent_card={"name": "Greeter", "description": "Greets.", "skills": [{"id": "g", "name": "Greet"}]}, **options)
    agent.heard = []

    @agent.on_message
    async def answer(message):
        agent.heard.append(message)
        await agent.reply_text(message.task_id, f"Hello, {message.payload.parts[0].text}!")

    return agent


@pytest.mark.parametrize("transport", ["http", "ws", "auto"])
def test_a_caller_asks_an_agent(run, transport):
    async def work():
        async with running(greeter()) as agent:
            caller = client(transport)
            if transport == "http":
                return await caller.ask_text(agent.name, "world", poll_interval=0.05)
            async with running(caller):
                return await caller.ask_text(agent.name, "world", poll_interval=0.05)

    assert run(work()) == "Hello, world!"


def test_who_is_connected_and_who_asks(run):
    async def work():
        async with running(greeter()) as agent:
            assert agent.agent_id == agent.name
            caller = client("http")
            await caller.ask_text(agent.name, "you", poll_interval=0.05)
            assert agent.heard[0].from_agent == caller.name
            assert agent.heard[0].payload.role == "user"

    run(work())


@pytest.mark.parametrize("transport", ["http", "ws", "auto"])
def test_tasks_are_read_listed_and_canceled(run, transport):
    async def work():
        async with running(client()) as agent:
            caller = client(transport)
            async with running(caller):
                task = await caller.send_text(agent.name, "never answered")
                assert task.status.state.value == "working"
                assert (await caller.get_task(task.id)).context_id == task.context_id
                page = await caller.list_tasks()
                assert (page.total_size, [task.id for task in page.tasks]) == (1, [task.id])
                assert (await caller.cancel_task(task.id)).status.state.value == "canceled"

    run(work())


def test_a_message_waits_for_an_agent_that_is_away(run):
    async def work():
        agent = greeter()
        async with running(agent):
            pass
        caller = client("http")
        task = await caller.send_text(agent.name, "later")
        assert task.status.state.value == "submitted"
        assert "not connected" in task.status.message
        agent.auto_reconnect = True
        async with running(agent):
            done = await caller.wait_for_task(task.id, poll_interval=0.05)
        assert done.get_response_text() == "Hello, later!"
        with pytest.raises(Exception, match="ttl 0"):
            await caller.send_text(agent.name, "now", SendOptions(ttl=0))

    run(work())


def test_a_caller_that_is_connected_is_told(run):
    async def work():
        async with running(greeter()) as agent, running(client("auto")) as caller:
            told = []
            caller.on_task_update(lambda task: told.append(task))
            task = await caller.send_text(agent.name, "push")
            last = await until("the end", lambda: [t for t in told if t.status.state.value == "completed"])
            assert (last[0].id, last[0].get_response_text()) == (task.id, "Hello, push!")

    run(work())


@pytest.mark.parametrize("transport", ["http", "auto"])
@pytest.mark.parametrize("named", [False, True])
def test_a_caller_answers_what_it_is_asked(run, transport, named):
    """An agent that the client cannot be asks back; the client's own ways to go on name nothing but the context."""

    async def work():
        asker = client()
        heard = []

        @asker.on_message
        async def ask(message):
            heard.append(message.payload.parts[0].text)
            last = len(heard) > 1
            status = {"state": "completed"} if last else {"state": "input-required", "message": "Which?"}
            await asker._ws.send(json.dumps({"type": "task_response", "taskId": message.task_id, "status": status}))

        async with running(asker):
            caller = client(transport)
            task = await caller.send_text(asker.name, "first")
            while (await caller.get_task(task.id)).status.state.value != "input-required":
                await asyncio.sleep(0.02)
            if named:
                more = await caller.send_text(asker.name, "second", SendOptions(context_id=task.context_id))
            else:
                more = await caller.reply_text(task.id, "second")
            assert more.id == task.id
            await caller.wait_for_task(task.id, poll_interval=0.05)
        assert heard == ["first", "second"]

    run(work())


def test_every_kind_of_part_arrives(run):
    async def work():
        async with running(greeter()) as agent:
            caller = client("http")
            parts = [
                TextPart(text="see"),
                FilePart(name="a.txt", mimeType="text/plain", data="aGk="),
                DataPart(mimeType="application/json", data='{"n": [1, 2.5]}'),
            ]
            task = await caller.send(agent.name, MessagePayload(role="agent", parts=parts))
            await caller.wait_for_task(task.id, poll_interval=0.05)
            seen = agent.heard[0].payload.parts
            assert [part.kind for part in seen] == ["text", "file", "data"]
            assert (seen[1].name, seen[1].data) == ("a.txt", "aGk=")
            assert seen[2].data == '{"n": [1, 2.5]}'

    run(work())


def test_an_agent_is_found_with_its_card(run):
    async def work():
        async with running(greeter()) as agent:
            caller = client("http")
            # The card is sent after the welcome, and nobody is told when it has arrived.
            for _ in range(500):
                found = await caller.list_available_agents(query=agent.name)
                if found and found[0]["description"] == "Greets.":
                    break
                await asyncio.sleep(0.02)
            assert [entry["id"] for entry in found] == [agent.name]
            page = await caller.discover_agents(query=agent.name, limit=5)
            assert (page["count"], page["agents"][0]["accessType"]) == (1, "same-tenant")

    run(work())


def test_a_connection_that_is_cut_comes_back(run):
    async def work():
        async with running(greeter()) as agent:
            await agent._ws.close()
            caller = client("http")
            assert await caller.ask_text(agent.name, "again", poll_interval=0.05) == "Hello, again!"

    run(work())


def test_a_wrong_key_is_told(run):
    async def work():
        hub = client("auto")
        hub.api_key = "flk_wrong"
        with pytest.raises(Exception, match="401"):
            await hub.connect()
        hub = GopherHole("flk_wrong", hub_url=URL.replace("http://", "ws://") + "/gopherhole/ws", transport="http")
        with pytest.raises(Exception, match="The key is not valid here"):
            await hub.send_text("echo", "hi")

    run(work())


def test_an_agent_that_never_answers_hears_everything(run):
    """More than the window of a connection holds: the client has no word to acknowledge a message with."""

    async def work():
        listener = client()
        heard = []

        @listener.on_message
        async def keep(message):
            heard.append(message.payload.parts[0].text)

        async with running(listener):
            caller = client("http")
            for number in range(70):
                await caller.send_text(listener.name, str(number))
            await until("all are heard", lambda: len(heard) == 70)
            assert heard == [str(number) for number in range(70)]

    run(work())


def test_the_hub_answers_a2a_to_others(run):
    async def work():
        async with httpx.AsyncClient() as plain:
            card = await plain.get(f"{URL}/.well-known/agent-card.json")
            bindings = [interface["protocolBinding"] for interface in card.json()["supportedInterfaces"]]
            assert "urn:flotilla:binding:channel:1.0" in bindings

    run(work())
