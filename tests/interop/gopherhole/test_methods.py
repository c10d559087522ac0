"""Every public method of GopherHole's published client: what it is answered with here, or by which words refused."""

import inspect

import pytest
from conftest import client, running
from gopherhole import GopherHole
from gopherhole.types import MessagePayload, TextPart

# Tried in test_client.py, on both sides of a task.
ELSEWHERE = {"connect", "disconnect", "run_forever", "reply", "reply_text", "update_card", "cancel_task"}

# On both ways of asking; each with what must hold of the result.
ANSWERED = {
    "send": (("echo", MessagePayload(role="user", parts=[TextPart(text="hi")])), lambda task: task.id),
    "send_text": (("echo", "hi"), lambda task: task.id),
    "send_text_and_wait": (("echo", "hi", None, 0.05), lambda task: task.get_response_text() == "hi"),
    "ask_text": (("echo", "hi", None, 0.05), lambda text: text == "hi"),
    "list_available_agents": ((None, True), lambda agents: "echo" in [agent["id"] for agent in agents]),
    "discover_agents": ((), lambda page: page["count"] >= len(page["agents"]) > 0),
    "discover": ((), lambda page: "echo" in [agent.id for agent in page.agents]),
    "search_agents": (("echo",), lambda page: "echo" in [agent.id for agent in page.agents]),
    "find_by_category": (("no such",), lambda page: page.agents == []),
    "find_by_tag": (("no such",), lambda page: page.agents == []),
    "find_by_skill_tag": (("no such",), lambda page: page.agents == []),
    "find_by_content_mode": (("text/plain",), lambda page: "echo" in [agent.id for agent in page.agents]),
    "get_top_rated": ((1,), lambda page: len(page.agents) == 1),
    "get_popular": ((1,), lambda page: len(page.agents) == 1),
    "get_featured": ((), lambda agents: agents == []),
    "get_categories": ((), lambda categories: all(category.count > 0 for category in categories)),
    "get_agent_info": (("echo",), lambda info: (info.agent.id, info.agent_card.name) == ("echo", "echo")),
    "find_best_agent": (("echo",), lambda agent: agent.id == "echo"),
}

REFUSED = {
    "discover_nearby": ((1.0, 2.0), "does not have 'x-gopherhole/agents.discover.nearby'"),
    "rate_agent": (("echo", 5), "404"),
    "request_access": (("echo",), "404"),
    "ask": (("why?",), "no agent 'agent-concierge-official'"),
    "research": (("why?",), "no agent 'agent-concierge-official'"),
    "find_agents": (("why?",), "no agent 'agent-concierge-official'"),
    "workspace_create": (("w",), "does not have"),
    "workspace_get": (("w",), "does not have"),
    "workspace_delete": (("w",), "does not have"),
    "workspace_list": ((), "does not have"),
    "workspace_members_add": (("w", "a"), "does not have"),
    "workspace_members_remove": (("w", "a"), "does not have"),
    "workspace_members_list": (("w",), "does not have"),
    "workspace_store": (("w", "c"), "does not have"),
    "workspace_query": (("w", "q"), "does not have"),
    "workspace_update": (("w", "m"), "does not have"),
    "workspace_forget": (("w", "m"), "does not have"),
    "workspace_memories": (("w",), "does not have"),
    "workspace_types": ((), "does not have"),
    "workspace_secrets_set": (("w", "k", "v"), "does not have"),
    "workspace_secrets_get": (("w", "k"), "does not have"),
    "workspace_secrets_delete": (("w", "k"), "does not have"),
    "workspace_secrets_list": (("w",), "does not have"),
}

# These need a task of the caller's own.
ON_A_TASK = {"wait_for_task", "get_task", "list_tasks"}


def test_no_method_is_left_out():
    public = {name for name, _ in inspect.getmembers(GopherHole, inspect.iscoroutinefunction) if name[0] != "_"}
    assert public == ELSEWHERE | ON_A_TASK | set(ANSWERED) | set(REFUSED)


@pytest.mark.parametrize("transport", ["http", "ws"])
def test_what_a_hub_has_is_answered(run, transport):
    async def work():
        async with running(client(transport)) as hub:
            for name, (given, holds) in ANSWERED.items():
                result = await getattr(hub, name)(*given)
                assert holds(result), (name, result)

    run(work())


@pytest.mark.parametrize("transport", ["http", "ws"])
def test_what_it_has_not_is_refused(run, transport):
    async def work():
        async with running(client(transport)) as hub:
            for name, (given, words) in REFUSED.items():
                with pytest.raises(Exception, match=words):
                    await getattr(hub, name)(*given)

    run(work())


@pytest.mark.parametrize("transport", ["http", "ws"])
def test_tasks_are_asked_for(run, transport):
    async def work():
        async with running(client(transport)) as hub:
            task = await hub.send_text("echo", "hi")
            done = await hub.wait_for_task(task.id, poll_interval=0.05)
            assert (await hub.get_task(task.id, history_length=0)).status == done.status
            for asked in [{}, {"context_id": task.context_id}, {"status": "completed"}, {"page_size": 1}]:
                page = await hub.list_tasks(**asked)
                assert [listed.id for listed in page.tasks] == [task.id], asked
            assert (await hub.list_tasks(status="working")).tasks == []

    run(work())
