"""A real hub with agents under test, and the little of A2A and of the owner's API that the tests need."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid

HERE = pathlib.Path(__file__).parent
PROGRAM = os.environ.get("FLOTILLA_PROGRAM", "")
AGENTS = pathlib.Path(os.environ.get("FLOTILLA_AGENTS", "/nowhere"))
PROGRAMS = pathlib.Path(os.environ.get("FLOTILLA_PROGRAMS", "/nowhere"))
KEY = "flk_" + "0" * 62 + "aa"


def until(what, look, seconds=60):
    """What `look` finds, once it finds something."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"waited {seconds} s in vain for {what}")


class Process:
    """A process that prints one line when it is ready, and ends with its standard input."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.line = self.process.stdout.readline().strip()

    def stop(self):
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()


def messages_api():
    return Process(sys.executable, "-B", str(HERE / "messages_api.py"))


class Hub:
    """Agents are JSON, which is YAML too. The hub's environment holds nothing but what is said here."""

    def __init__(self, agents, env=()):
        self.folder = tempfile.TemporaryDirectory(prefix="flotilla-agents-")
        self.path = pathlib.Path(self.folder.name)
        (self.path / "hub.yaml").write_text(json.dumps({"agents": agents}))
        self.env = {"PATH": "/usr/bin:/bin", "HOME": str(self.path), "FLOTILLA_OWNER_KEY": KEY} | dict(env)
        self.start()

    def start(self):
        command = [PROGRAM, "serve", "--listen", "127.0.0.1:0", "--config", "hub.yaml", "--data-dir", "data"]
        self.errors = open(self.path / "errors", "ab")
        self.process = subprocess.Popen(
            command, cwd=self.path, env=self.env, stdout=subprocess.PIPE, stderr=self.errors, text=True
        )
        for line in self.process.stdout:
            found = re.search(r"JSON-RPC\s+(http://[^/\s]+)/", line)
            if found:
                self.url = found.group(1)
                return
        raise AssertionError((self.path / "errors").read_text())

    def stop(self):
        self.process.terminate()
        self.process.wait(30)
        self.process.stdout.close()
        self.errors.close()

    def remove(self):
        self.stop()
        self.folder.cleanup()

    def restart(self):
        self.stop()
        self.start()

    def http(self, path, body=None):
        request = urllib.request.Request(self.url + path, data=None if body is None else json.dumps(body).encode())
        request.add_header("authorization", f"Bearer {KEY}")
        request.add_header("content-type", "application/json")
        request.add_header("a2a-version", "1.0")
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path}: {error.code} {error.read().decode()}") from error

    def cli(self, *words):
        env = self.env | {"FLOTILLA_URL": self.url, "FLOTILLA_KEY": KEY, "FLOTILLA_DATA_DIR": str(self.path / "data")}
        run = subprocess.run([PROGRAM, *words], cwd=self.path, env=env, capture_output=True, text=True, timeout=60)
        assert run.returncode == 0, run
        return run.stdout

    def worker(self, name):
        """What the fleet knows of a worker; nothing before it was announced."""
        return next((one for one in self.http("/api/fleet")["workers"] if one["name"] == name), {})

    def send(self, agent, text, wait=True, **members):
        message = {"messageId": str(uuid.uuid4()), "role": "ROLE_USER", "parts": [{"text": text}]} | members
        body = {"message": message, "configuration": {"returnImmediately": not wait}}
        return self.http(f"/agents/{agent}/message:send", body)["task"]

    def task(self, agent, task):
        return self.http(f"/agents/{agent}/tasks/{task['id']}")

    def ended(self, agent, task, state="COMPLETED"):
        def look():
            now = self.task(agent, task)
            return now if now["status"]["state"].endswith(state) else None

        return until(state, look)

    def log(self, task):
        return json.dumps(self.http(f"/api/tasks/{task['id']}/log"))


class Worker:
    """A worker with agents of its own, for a hub that has none of them."""

    def __init__(self, hub, agents, env=()):
        self.hub, self.agents = hub, agents
        self.path = hub.path / "worker"
        self.path.mkdir()
        (self.path / "worker.yaml").write_text(json.dumps({"worker": {"look": "1s"}, "agents": agents}))
        made = hub.cli("keys", "create", "station", "--scope", "agents:connect")
        self.env = {"PATH": "/usr/bin:/bin", "HOME": str(self.path), "FLOTILLA_KEY": made.strip()} | dict(env)
        self.start()

    def start(self):
        command = [PROGRAM, "worker", "--hub", self.hub.url, "--config", "worker.yaml", "--state", "state"]
        with open(self.path / "errors", "ab") as errors:
            self.process = subprocess.Popen(command, cwd=self.path, env=self.env, stderr=errors)
        for name in self.agents:
            until(f"{name} at the hub", lambda: self.hub.worker(name).get("health") not in (None, "OFFLINE"), 120)

    def stop(self):
        self.process.terminate()
        self.process.wait(60)

    def restart(self):
        self.stop()
        self.start()

    def doctor(self):
        command = [PROGRAM, "worker", "doctor", "--config", "worker.yaml", "--output", "json"]
        run = subprocess.run(command, cwd=self.path, env=self.env, capture_output=True, text=True, timeout=300)
        return json.loads(run.stdout)


def state(task):
    return task["status"]["state"].removeprefix("TASK_STATE_")


def reply(task):
    parts = [part for artifact in task.get("artifacts", []) for part in artifact["parts"]]
    return "".join(part.get("text", "") for part in parts)


def alive(task):
    """How many processes of a task there are."""
    mark = f"FLOTILLA_RUN={task['id']}.".encode()
    count = 0
    for process in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            count += any(variable.startswith(mark) for variable in process.read_bytes().split(b"\0"))
        except OSError:
            pass
    return count


def running(*words):
    """Whether a process was started with exactly these words, whatever its environment is."""
    for process in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if process.read_text(errors="replace").split("\0")[:-1] == list(words):
                return True
        except OSError:
            pass
    return False
