"""Agents on the published SDKs that go on by themselves after AUTH_REQUIRED, without another message."""

import pytest
from cells import ENDED, KEY, REMOTE, only, reaches, texts, words
from conftest import resolve
from plain_client import Client


@pytest.fixture(params=REMOTE)
def connect(request, http, channels):
    async def connect():
        return Client.of(await resolve(http, request.param), "JSONRPC", http, channels, KEY)

    return connect


async def test_what_comes_after_a_sign_in_elsewhere_is_told(connect):
    client = await connect()
    asked = await client.send(words("signin please"))
    assert (asked["state"], asked["said"]) == ("AUTH_REQUIRED", "Please sign in")
    done = await reaches(client, asked["id"], *ENDED)
    assert (done["state"], done["said"]) == ("COMPLETED", "Done")
    assert texts(only(done["artifacts"])["parts"]) == "Signed in"


async def test_a_reply_to_a_task_that_was_looked_at_is_answered(connect):
    """Whoever waits is looked at after a second, by a stream where there is one: that does not get in a reply's way."""
    client = await connect()
    asked = await client.send(words("order a pizza"))
    await client.send(words("slow 2"))
    done = await client.send(words("large"), task_id=asked["id"], context_id=asked["context_id"])
    assert (done["state"], done["said"]) == ("COMPLETED", "Here you are")
    assert only(done["artifacts"])["parts"] == [{"data": {"size": "large", "turn": "2"}}]
