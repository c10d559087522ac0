"""The matrix with the Python SDK of A2A 1.0 as the client; the cells are in ../matrix."""

import pytest
from cells import *  # noqa: F403
from cells import KEY
from conftest import resolve
from plain_client import Client


@pytest.fixture(params=["a2a-sdk-1.x"])
def connect(binding, http, channels):
    async def connect(agent):
        return Client.of(await resolve(http, agent), binding, http, channels, KEY)

    return connect
