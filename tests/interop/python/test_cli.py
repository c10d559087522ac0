"""The command line against an agent of the official Python SDK, over each of its bindings."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from program import Program, agent

BINDINGS = ["JSONRPC", "HTTP+JSON", "GRPC"]


@pytest.fixture(scope="module")
def url():
    with agent() as url:
        yield url


@pytest.fixture(params=BINDINGS)
def cli(request, url, tmp_path):
    return Program(tmp_path, "--agent-card", url, "--transport", request.param)


@pytest.fixture
def plain(url, tmp_path):
    return Program(tmp_path, "--agent-card", url)


def state(task):
    return task["status"]["state"]


def test_card_from_host_url_and_file(url, tmp_path):
    program = Program(tmp_path)
    card = program.json("card", "get", "-a", url)
    assert card["name"] == "Obedient"
    (tmp_path / "card.json").write_text(json.dumps(card))
    host = url.removeprefix("http://")
    whole = f"{url}/.well-known/agent-card.json"
    for reference in (host, whole, "card.json", f"file://{tmp_path}/card.json"):
        assert program.json("card", "get", "-a", reference) == card
    shown = program.ok("card", "get", "--validate", "-a", url)
    assert shown.field("Transport") == "JSONRPC"
    assert shown.field("Push notifications") == "yes"
    assert shown.field("Valid") == "yes"


def test_send_waits_and_renders(cli):
    sent = cli.json("send", "complete this")["task"]
    assert state(sent) == "TASK_STATE_COMPLETED"
    assert sent["artifacts"][0]["parts"][0]["text"] == "You said complete this"
    shown = cli.ok("send", "files")
    assert "  You said files" in shown.out
    assert "File: blob.bin (application/octet-stream, 4 bytes)" in shown.out
    assert "File: a.png (image/png, https://example.com/a.png)" in shown.out
    assert '"two"' in shown.out
    assert shown.field("State") == "TASK_STATE_COMPLETED"


def test_parts_arrive_in_order_with_their_types(cli, tmp_path):
    (tmp_path / "d.json").write_text('{"n": 1}')
    (tmp_path / "blob").write_bytes(b"\x00\xff")
    words = ("send", "complete", "--file", "blob", "--media-type", "application/octet-stream", "--data", "-")
    more = ("--data", "d.json", "--text", "end", "--metadata", '{"k": {"n": 2}}')
    sent = cli.json(*words, *more, stdin="[7]")["task"]
    came = sent["artifacts"][0]["parts"][1]["data"]
    assert came["parts"] == [
        {"text": "complete"},
        {"raw": "AP8=", "filename": "blob", "mediaType": "application/octet-stream"},
        {"data": [7], "mediaType": "application/json"},
        {"data": {"n": 1}, "mediaType": "application/json"},
        {"text": "end"},
    ]
    assert came["metadata"] == {"k": {"n": 2}}


def test_direct_message_is_no_error(cli):
    assert cli.json("send", "direct")["message"]["parts"][0]["text"] == "Hello yourself"
    [line] = cli.ok("send", "direct", "--stream", "-o", "json").lines()
    assert "message" in line


def test_stream_is_lines_and_ends_with_the_end(cli):
    lines = cli.ok("send", "complete", "--stream", "-o", "json").lines()
    assert "task" in lines[0]
    last = lines[-1]["statusUpdate"]
    assert state(last) == "TASK_STATE_COMPLETED" and last["taskId"] and last["contextId"]
    assert any("artifactUpdate" in line for line in lines)
    assert cli.ok("send", "complete", "--stream").out.count("State: TASK_STATE_COMPLETED") == 1


def test_async_then_wait(cli):
    started = cli.ok("send", "slow", "--async")
    task = started.field("Task")
    assert started.field("Context") and f"task get --wait {task}" in started.field("Resume")
    assert state(cli.json("task", "get", task)) in ("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING")
    assert state(cli.json("task", "get", task, "--wait", "--poll-interval", "100ms")) == "TASK_STATE_COMPLETED"


def test_a_pause_is_reported_and_resumed(cli):
    asked = cli.ok("send", "ask")
    assert asked.field("State") == "TASK_STATE_INPUT_REQUIRED" and "INPUT_REQUIRED" in asked.err
    task, context = asked.field("Task"), asked.field("Context")
    assert f"send --task-id {task}" in asked.field("Resume")
    ended = cli.ok("send", "complete", "--task-id", task)
    assert (ended.field("Task"), ended.field("Context")) == (task, context)
    assert ended.field("State") == "TASK_STATE_COMPLETED"
    assert cli.ok("send", "login").field("State") == "TASK_STATE_AUTH_REQUIRED"
    again = cli.ok("send", "complete", "--context-id", context)
    assert again.field("Context") == context and again.field("Task") != task


@pytest.mark.parametrize("word", ["fail", "reject"])
def test_an_outcome_is_not_an_exit_status(cli, word):
    ran = cli.run("send", word)
    assert ran.code == 0
    assert ran.field("State") in ("TASK_STATE_FAILED", "TASK_STATE_REJECTED")
    assert "Warning" in ran.err and "Warning" not in ran.out


def test_rejected_identifiers_fail_and_start_nothing(cli):
    ended = cli.json("send", "complete")["task"]
    total = cli.json("task", "list")["totalSize"]
    for ids in (["--task-id", "no-such-task"], ["--task-id", ended["id"]]):
        ran = cli.run("send", "more", *ids, "-o", "json")
        assert ran.code == 1 and not ran.error().startswith("A2ACLI_")
        assert "--debug" in ran.json()["error"]["hint"]
    assert cli.json("task", "list")["totalSize"] == total


def test_list_by_page_and_filter(cli):
    context = cli.ok("send", "complete").field("Context")
    cli.ok("send", "ask", "--context-id", context)
    page = cli.json("task", "list", "--context-id", context, "--page-size", "1")
    assert len(page["tasks"]) == 1 and page["nextPageToken"]
    rest = cli.json("task", "list", "--context-id", context, "--page-token", page["nextPageToken"])
    assert len(rest["tasks"]) == 1
    [one] = cli.json("task", "list", "--context-id", context, "--status", "input-required")["tasks"]
    assert state(one) == "TASK_STATE_INPUT_REQUIRED"


def test_cancel_and_cancel_again(cli):
    task = cli.ok("send", "hold", "--async").field("Task")
    assert cli.ok("task", "cancel", task).field("State") == "TASK_STATE_CANCELED"
    again = cli.run("task", "cancel", task, "-o", "json")
    assert again.code == 0 or again.error() == "TaskNotCancelableError"
    assert state(cli.json("task", "get", task)) == "TASK_STATE_CANCELED"


def test_subscribe_follows_to_the_end(cli):
    task = cli.ok("send", "slow", "--async").field("Task")
    lines = cli.ok("task", "subscribe", task, "--stream", "-o", "json").lines()
    assert lines[0]["task"]["id"] == task
    assert state(lines[-1]["statusUpdate"]) == "TASK_STATE_COMPLETED"
    task = cli.ok("send", "slow", "--async").field("Task")
    assert state(cli.json("task", "subscribe", task)) == "TASK_STATE_COMPLETED"


class Cut(BaseHTTPRequestHandler):
    """Between the program and the agent: breaks each stream after its first event, and lets none begin again."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        method = json.loads(body)["method"]
        self.server.asked.append(method)
        if method == "SubscribeToTask":
            return self.send_error(502)
        kept = {name: self.headers[name] for name in ("Content-Type", "A2A-Version", "Accept") if name in self.headers}
        with httpx.stream("POST", f"{self.server.agent}{self.path}", content=body, headers=kept) as answer:
            self.send_response(answer.status_code)
            self.send_header("Content-Type", answer.headers["Content-Type"])
            self.end_headers()
            for piece in answer.iter_bytes():
                self.wfile.write(piece)
                if method == "SendStreamingMessage":
                    break

    def log_message(self, *_):
        pass


def test_where_the_stream_fails_the_task_is_asked_for(url, tmp_path):
    with ThreadingHTTPServer(("127.0.0.1", 0), Cut) as server:
        server.agent, server.asked = url, []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        card = Program(tmp_path, "--agent-card", url).json("card", "get")
        card["supportedInterfaces"][0]["url"] = f"http://127.0.0.1:{server.server_port}/rpc"
        (tmp_path / "cut.json").write_text(json.dumps(card))
        program = Program(tmp_path, "--agent-card", "cut.json", "--poll-interval", "200ms")
        ran = program.ok("send", "slow", "--stream", "-o", "json")
        server.shutdown()
    assert state(ran.lines()[-1]["task"]) == "TASK_STATE_COMPLETED"
    assert "asking for the task" in ran.err
    assert server.asked[0] == "SendStreamingMessage" and server.asked[-1] == "GetTask"


def test_download(cli, tmp_path):
    task = cli.ok("send", "files").field("Task")
    cli.ok("task", "download", task, "--dir", "got")
    assert (tmp_path / "got" / "blob.bin").read_bytes() == b"\x00\x01\x02\xff"
    assert json.loads((tmp_path / "got" / "files-3.json").read_text()) == {"nested": [1, "two"]}
    assert (tmp_path / "got" / "result-1.txt").read_text() == "You said files"


def test_push_configs(cli):
    task = cli.ok("send", "ask").field("Task")
    push = ("task", "push-config")
    made = cli.json(*push, "create", task, "--url", "https://example.com/hook", "--id", "one", "--token", "t0ken-x")
    assert made["url"] == "https://example.com/hook" and made["taskId"] == task
    assert cli.json(*push, "get", task, "one")["id"] == "one"
    assert [config["id"] for config in cli.json(*push, "list", task)["configs"]] == ["one"]
    shown = cli.ok(*push, "list", task, "--debug")
    assert shown.field("Push config") == "one" and "t0ken-x" not in shown.out + shown.err
    assert cli.ok(*push, "delete", task, "one").field("Deleted") == "one"
    assert not cli.json(*push, "list", task).get("configs")
    assert cli.run(*push, "get", task, "one").code == 1


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("task", "get", "nope"), "TaskNotFoundError"),
        (("task", "subscribe", "nope"), "TaskNotFoundError"),
        (("card", "get", "--extended"), "UnsupportedOperationError"),
    ],
)
def test_errors_have_the_protocol_s_names(cli, words, name):
    ran = cli.run(*words, "-o", "json")
    assert (ran.code, ran.error()) == (1, name)
    assert ran.json()["error"]["hint"]


def test_timeout_and_debug(plain):
    ran = plain.run("send", "hold", "--timeout", "1s", "-o", "json", "--debug")
    assert (ran.code, ran.error()) == (5, "A2ACLI_ERR_TIMEOUT")
    assert "task get --wait" in ran.json()["error"]["hint"]
    assert '"method":"SendStreamingMessage"' in ran.err


def test_doctor_knows_a_healthy_agent(plain):
    ran = plain.run("doctor")
    assert "Obedient answers over JSONRPC, HTTP+JSON, GRPC" in ran.out


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate nobody has signed but itself."""
    from datetime import datetime, timedelta, timezone
    from ipaddress import ip_address

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "agent")])
    now = datetime.now(timezone.utc)
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(days=1))
        .add_extension(names, critical=False)
        .sign(key, hashes.SHA256())
    )
    folder = tmp_path_factory.mktemp("tls")
    files = [folder / "cert.pem", folder / "key.pem"]
    files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    files[1].write_bytes(key.private_bytes(*private))
    return [str(file) for file in files]


def test_certificates_are_checked_unless_told_otherwise(certificate, tmp_path):
    with agent("--tls", *certificate) as url:
        for binding in BINDINGS:
            program = Program(tmp_path, "--agent-card", url, "--transport", binding)
            refused = program.run("send", "complete", "-o", "json")
            assert (refused.code, refused.error()) == (3, "A2ACLI_ERR_UNREACHABLE")
            ran = program.ok("send", "complete", "--insecure")
            assert ran.field("State") == "TASK_STATE_COMPLETED" and "--insecure" in ran.err
