"""Keys of agents on the hub under test, and the published client with them."""

import asyncio
import contextlib
import itertools
import os
import subprocess

import pytest
from gopherhole import GopherHole

URL = os.environ["FLOTILLA_URL"]
SCOPES = "agents:read,tasks:read,tasks:write,push:write,agents:connect"
numbers = itertools.count(1)


def fresh_key(name):
    """A key of a new agent, which is called as the key is."""
    command = [os.environ["FLOTILLA_PROGRAM"], "keys", "create", name, "--scope", SCOPES]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def client(transport="auto", **options):
    """The client as it is published, under a name of its own."""
    name = f"gopher-{os.getpid()}-{next(numbers)}"
    hub = GopherHole(
        fresh_key(name),
        hub_url=URL.replace("http://", "ws://") + "/gopherhole/ws",
        transport=transport,
        reconnect_delay=0.1,
        **options,
    )
    hub.name = name
    return hub


@contextlib.asynccontextmanager
async def running(hub):
    """Connected and listening, until the block ends."""
    await hub.connect()
    listening = asyncio.create_task(hub.run_forever())
    try:
        yield hub
    finally:
        await hub.disconnect()
        listening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await listening


async def until(what, look, patience=20):
    """Looks again and again until there is something."""
    for _ in range(patience * 50):
        found = look()
        if found:
            return found
        await asyncio.sleep(0.02)
    raise TimeoutError(what)


@pytest.fixture
def run():
    """Runs a coroutine, within a time."""
    return lambda work: asyncio.run(asyncio.wait_for(work, 60))
