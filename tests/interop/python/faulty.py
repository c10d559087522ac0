"""A hub and a remote agent that tests may kill: each a process of its own, the hub with a store that outlives it."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
from cells import KEY
from program import PROGRAM

# Patience is short, so that tests are.
CONFIG = """
agents:
  echo: {kind: echo}
  upstream:
    kind: a2a
    url: %s
    timeouts: {connect: 2s, lost: 2s}
    retries: {most: 1, first: 100ms}
    breaker: {failures: 3, pause: 1s}
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


HERE = Path(__file__).parent
PEERS = {
    "python-1.x": [sys.executable, "-B", str(HERE / "peer.py")],
    "python-0.3": [os.environ["FLOTILLA_PYTHON03"], "-B", str(HERE.parent / "python03/peer.py")],
    "javascript-1.x": ["node", str(HERE.parent / "javascript/peer.js")],
}


class Upstream:
    """A remote agent of the matrix, always at the same port."""

    def __init__(self, peer):
        self.command = PEERS[peer]
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = None

    def start(self):
        command = [*self.command, str(self.port)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline().strip() == self.url, "the agent did not start"
        return self

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.communicate()
            self.process = None


class Hub:
    """A hub whose agent `upstream` is elsewhere."""

    def __init__(self, home, upstream):
        self.home, self.process = home, None
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        (home / "hub.yaml").write_text(CONFIG % upstream.url)

    def start(self):
        command = [PROGRAM, "serve", "--config", "hub.yaml", "--data-dir", "data", "--listen", f"127.0.0.1:{self.port}"]
        environment = {**os.environ, "HOME": str(self.home), "FLOTILLA_OWNER_KEY": KEY}
        with open(self.home / "log", "a") as log:
            self.process = subprocess.Popen(command, cwd=self.home, env=environment, stdout=log, stderr=log)
        deadline = time.monotonic() + 20
        while not self.ready():
            assert self.process.poll() is None and time.monotonic() < deadline, (self.home / "log").read_text()
            time.sleep(0.02)
        return self

    def ready(self):
        try:
            return httpx.get(f"{self.url}/readyz", verify=False).status_code == 200
        except httpx.TransportError:
            return False

    def kill(self):
        if self.process:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process = None
