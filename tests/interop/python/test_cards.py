"""Discovery: the cards of the hub and of its agents, and how one reaches an agent from them."""

import pytest
from a2a.client import AgentCardResolutionError
from conftest import URL, resolve, texts


CHANNEL = ("urn:flotilla:binding:channel:1.0", "1.0", URL.replace("http", "ws", 1) + "/ws")


async def test_the_root_card_is_the_hubs_own(http):
    card = await resolve(http, None)
    assert card.name == "Flotilla"
    assert interfaces(card) == [
        ("JSONRPC", "1.0", f"{URL}/a2a"),
        ("HTTP+JSON", "1.0", URL),
        ("GRPC", "1.0", URL.removeprefix("http://")),
        CHANNEL,
        ("JSONRPC", "0.3", f"{URL}/a2a"),
        ("HTTP+JSON", "0.3", URL),
        ("GRPC", "0.3", URL.removeprefix("http://")),
    ]


async def test_an_agents_card_tells_its_own(http):
    card = await resolve(http, "script")
    assert (card.name, card.version) == ("script", "2.1.0")
    assert card.description == "Does what the first word of the message says."
    assert interfaces(card) == [
        ("JSONRPC", "1.0", f"{URL}/agents/script/a2a"),
        ("HTTP+JSON", "1.0", f"{URL}/agents/script"),
        ("GRPC", "1.0", URL.removeprefix("http://")),
        CHANNEL,
        ("JSONRPC", "0.3", f"{URL}/agents/script/a2a"),
        ("HTTP+JSON", "0.3", f"{URL}/agents/script"),
    ], "gRPC of 0.3 cannot name an agent, so only the default one's card has it"
    assert card.supported_interfaces[2].tenant == "script", "gRPC has no path to name the agent"
    [skill] = card.skills
    assert (skill.id, skill.name, skill.tags, skill.examples) == ("obey", "Obey", ["test"], ["stream"])
    assert card.capabilities.streaming
    assert card.capabilities.push_notifications
    assert not card.capabilities.extended_agent_card
    assert card.security_schemes["bearer"].http_auth_security_scheme.scheme == "Bearer"
    assert card.security_schemes["apiKey"].api_key_security_scheme.name == "X-API-Key"
    assert [list(r.schemes) for r in card.security_requirements] == [["bearer"], ["apiKey"]]


async def test_a_card_shows_what_differs_between_agents(http):
    assert (await resolve(http, "texts")).default_input_modes == ["text/plain"]
    assert not (await resolve(http, "calm")).capabilities.streaming
    extensions = (await resolve(http, "strict")).capabilities.extensions
    assert [e.uri for e in extensions if e.required] == ["urn:example:ext:strict"]


async def test_no_card_for_an_unknown_agent(http):
    with pytest.raises(AgentCardResolutionError) as error:
        await resolve(http, "nobody")
    assert error.value.status_code == 404


async def test_the_root_is_the_default_agent(connect):
    task = await (await connect(None)).say("to whom it may concern")
    assert task.artifacts[0].name == "echo"
    assert texts(task.artifacts[0].parts) == ["to whom it may concern"]


async def test_a_tenant_names_the_agent_at_the_root(connect):
    task = await (await connect(None)).say("files", tenant="script")
    assert task.artifacts[0].artifact_id == "files"
    assert await (await connect("script")).get(task.id) == task


def interfaces(card):
    return [(i.protocol_binding, i.protocol_version, i.url) for i in card.supported_interfaces]
