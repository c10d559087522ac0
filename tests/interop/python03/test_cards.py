"""Cards as a client of A2A 0.3 meets them that knows of no other version and says nothing."""

import pytest
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import Message, Part, Role, TaskState, TextPart
from cells import KEY, URL
import httpx


@pytest.fixture
def anyio_backend():
    return "asyncio"


async def test_the_card_at_the_root_serves_a_client_that_names_no_version():
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {KEY}"}) as http:
        card = await A2ACardResolver(http, URL).get_agent_card()
        assert (card.name, card.url, card.preferred_transport) == ("Flotilla", f"{URL}/a2a", "JSONRPC")
        assert [face.transport for face in card.additional_interfaces] == ["JSONRPC", "HTTP+JSON", "GRPC"]
        assert card.capabilities.streaming and card.capabilities.push_notifications
        client = ClientFactory(ClientConfig(httpx_client=http, streaming=False)).create(card)
        message = Message(message_id="from the root", role=Role.user, parts=[Part(root=TextPart(text="hello"))])
        [(task, _)] = [event async for event in client.send_message(message)]
        assert task.status.state == TaskState.completed
        assert task.artifacts[0].parts[0].root.text == "hello"


async def test_an_agents_card_in_the_form_of_0_3_names_its_own_doors():
    async with httpx.AsyncClient(headers={"A2A-Version": "0.3"}) as http:
        card = await A2ACardResolver(http, f"{URL}/agents/script").get_agent_card()
    assert (card.name, card.version, card.protocol_version) == ("script", "2.1.0", "0.3.0")
    doors = {face.transport: face.url for face in card.additional_interfaces}
    assert doors == {"JSONRPC": f"{URL}/agents/script/a2a", "HTTP+JSON": f"{URL}/agents/script"}
    assert card.security_schemes["bearer"].root.scheme == "Bearer"
    [skill] = card.skills
    assert (skill.id, skill.examples) == ("obey", ["stream"])
