"""The command line with --a2a-version 0.3 against an agent of the Python SDK of A2A 0.3, over its three bindings."""

import json
import os
import subprocess

import pytest
from cells import BINDINGS

PROGRAM = os.environ["FLOTILLA_PROGRAM"]
PEER = os.environ["FLOTILLA_PEER_PYTHON03"]


@pytest.fixture(params=BINDINGS)
def flotilla(request, tmp_path):
    """Runs a command; the result, which is JSON."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FLOTILLA_", "A2ACLI_"))}
    options = ["-a", PEER, "--a2a-version", "0.3", "--transport", request.param, "-o", "json"]

    def run(*words, code=0):
        done = subprocess.run(
            [PROGRAM, *words, *options],
            cwd=tmp_path,
            env={**kept, "HOME": str(tmp_path)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=30,
        )
        assert done.returncode == code, done
        return [json.loads(line) for line in done.stdout.splitlines()] if "--stream" in words else json.loads(done.stdout)

    return run


def texts(task):
    return "".join(part.get("text", "") for artifact in task["artifacts"] for part in artifact["parts"])


def test_send_and_read(flotilla):
    task = flotilla("send", "tell me")["task"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert texts(task) == "You said tell me"
    read = flotilla("task", "get", task["id"])
    assert read.get("task", read)["artifacts"] == task["artifacts"]


def test_stream(flotilla):
    frames = flotilla("send", "stream", "--stream")
    chunks = [frame["artifactUpdate"] for frame in frames if "artifactUpdate" in frame]
    assert "".join(part["text"] for chunk in chunks for part in chunk["artifact"]["parts"]) == "one two three"
    assert frames[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"


def test_a_task_that_asks_is_answered(flotilla):
    asked = flotilla("send", "order")["task"]
    assert asked["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    done = flotilla("send", "large", "--task-id", asked["id"], "--context-id", asked["contextId"])["task"]
    assert done["status"]["state"] == "TASK_STATE_COMPLETED"
    assert done["artifacts"][0]["parts"][0]["data"] == {"size": "large", "turn": "2"}


def test_cancel_and_its_refusal(flotilla):
    held = flotilla("send", "hold", "--async")["task"]
    canceled = flotilla("task", "cancel", held["id"])
    assert canceled.get("task", canceled)["status"]["state"] == "TASK_STATE_CANCELED"
    assert flotilla("task", "get", "nope", code=1)["error"]["code"] == "TaskNotFoundError"


def test_files_and_data_come_whole(flotilla):
    parts = flotilla("send", "files")["task"]["artifacts"][0]["parts"]
    assert parts[1] == {"raw": "AAEC/w==", "filename": "blob.bin", "mediaType": "application/octet-stream"}
    assert parts[2] == {"url": "https://example.com/a.png", "filename": "a.png", "mediaType": "image/png"}
    assert parts[3]["data"] == {"nested": {"list": [1, 2.5, "three", None, True]}}


def test_a_direct_message_stays_one(flotilla):
    message = flotilla("send", "direct")["message"]
    assert message["role"] == "ROLE_AGENT"
    assert message["parts"][0]["text"] == "You said direct"
