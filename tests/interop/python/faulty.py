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

CONFIG = """
agents:
  echo: {kind: echo}
  upstream:
    kind: a2a
    url: %s
%s
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class Upstream:
    """peer.py, always at the same port."""

    def __init__(self):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = None

    def start(self):
        command = [sys.executable, "-B", str(Path(__file__).with_name("peer.py")), str(self.port)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline().strip() == self.url, "the agent did not start"
        return self

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.communicate()
            self.process = None


class Hub:
    """A hub whose agent `upstream` is elsewhere; `more` are lines of that agent's configuration."""

    def __init__(self, home, upstream, more=""):
        self.home, self.process = home, None
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        lines = "\n".join(f"    {line}" for line in more.splitlines())
        (home / "hub.yaml").write_text(CONFIG % (upstream.url, lines))

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
