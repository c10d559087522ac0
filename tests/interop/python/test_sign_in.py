"""`auth login` against an agent of the official Python SDK whose card declares OAuth 2, and a token server beside it."""

import json
import stat
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

import pytest
from program import Program, agent

SECRET = "s3cret-of-the-client"


class Server(ThreadingHTTPServer):
    """Gives tokens out, and says which it knows."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answers)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.asked, self.tokens, self.lasts = [], set(), 3600

    def token(self):
        token = f"token-{len(self.asked)}"
        self.tokens.add(token)
        return {"access_token": token, "token_type": "Bearer", "expires_in": self.lasts, "refresh_token": "again-1"}


class Answers(BaseHTTPRequestHandler):
    def answer(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        shown = self.headers.get("Authorization", "").removeprefix("Bearer ")
        self.answer(200 if shown in self.server.tokens else 401, {})

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        form = {name: values[0] for name, values in parse_qs(body).items()}
        kind = form.get("grant_type", "device")
        self.server.asked.append(kind)
        if self.path == "/device":
            place = {"verification_uri": f"{self.server.url}/go", "interval": 1, "expires_in": 60}
            return self.answer(200, {"device_code": "device-secret", "user_code": "ABCD-1234", **place})
        if kind == "client_credentials" and form.get("client_secret") != SECRET:
            return self.answer(401, {"error": "invalid_client"})
        if kind.endswith("device_code") and self.server.asked.count(kind) == 1:
            return self.answer(400, {"error": "authorization_pending"})
        self.answer(200, self.server.token())

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with Server() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def url(server):
    with agent("--oauth", server.url) as url:
        yield url


@pytest.fixture
def cli(url, tmp_path):
    return Program(tmp_path, "--agent-card", url)


def completes(cli):
    for binding in ("JSONRPC", "HTTP+JSON"):
        assert cli.ok("send", "complete", "--transport", binding).field("State") == "TASK_STATE_COMPLETED"


def kept_out(cli):
    ran = cli.run("send", "complete", "-o", "json")
    assert (ran.code, ran.error()) == (4, "A2ACLI_ERR_CREDENTIALS_MISSING")
    assert "flotilla auth login" in ran.json()["error"]["hint"]


def test_a_person_signs_in_with_a_device_code(cli, server):
    kept_out(cli)
    ran = cli.ok("auth", "login", "--client-id", "me", "--debug")
    assert "ABCD-1234" in ran.err and f"{server.url}/go" in ran.err
    assert "device-secret" not in ran.err and not any(token in ran.err + ran.out for token in server.tokens)
    assert len(server.asked) == 3, "an invitation, not yet, and the token"
    completes(cli)


def test_a_program_signs_in_with_its_secret(cli, server):
    wrong = cli.run("auth", "login", "--client-id", "me", "-o", "json", A2ACLI_CLIENT_SECRET="no")
    assert (wrong.code, wrong.error()) == (4, "A2ACLI_ERR_AUTH_FAILED")
    kept_out(cli)
    assert cli.ok("auth", "login", "--client-id", "me", A2ACLI_CLIENT_SECRET=SECRET).field("Token") == "stored"
    completes(cli)


def test_a_token_is_kept_safely_attached_and_renewed(cli, server, tmp_path):
    server.lasts = 1
    cli.ok("auth", "login", "--client-id", "me", A2ACLI_CLIENT_SECRET=SECRET)
    file = tmp_path / ".config/a2a-cli/tokens.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    server.lasts = 3600
    completes(cli)
    assert server.asked == ["client_credentials", "refresh_token"], "renewed once, and kept"
    shown = cli.ok("config", "show")
    assert "token-" not in shown.out + shown.err
    cli.ok("auth", "logout")
    kept_out(cli)
    server.tokens.clear()
    ran = cli.run("send", "complete", "-o", "json", A2ACLI_BEARER="token-1")
    assert (ran.code, ran.error()) == (4, "A2ACLI_ERR_AUTH_FAILED")
