"""Real MCP servers, asked by the doctor whether they answer: the reference server, and one on the published Rust crate."""

import json
import pathlib
import socket
import subprocess
import tempfile
import unittest

from hub import AGENTS, PROGRAM, PROGRAMS, Process, until

EVERYTHING = AGENTS / "@modelcontextprotocol/server-everything/dist/index.js"
SERVER = PROGRAMS / "mcp-server"
AGENT = PROGRAMS / "acp-agent"
CLAUDE = AGENTS / "@anthropic-ai/claude-code/bin/claude.exe"
CODEX = AGENTS / "@openai/codex/bin/codex.js"
OPENCODE = AGENTS / "opencode-linux-x64/bin/opencode"


def left():
    """Processes that a probe left behind."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            if b"FLOTILLA_RUN=probe" in process.read_bytes().split(b"\0"):
                found.append(process)
        except OSError:
            pass
    return found


def listening(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@unittest.skipUnless(SERVER.exists() and AGENT.exists(), "!!! the test programs were not built: MCP is NOT tested")
class Servers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="flotilla-mcp-")
        self.path = pathlib.Path(self.folder.name)
        self.env = {"PATH": "/usr/bin:/bin", "HOME": self.folder.name}

    def tearDown(self):
        self.folder.cleanup()

    def doctor(self, servers):
        """What the doctor finds of an agent with these servers."""
        (self.path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
        acp = {"program": str(AGENT), "folder": str(self.path), "mcp_config": str(self.path / "mcp.json")}
        (self.path / "hub.yaml").write_text(json.dumps({"agents": {"coder": {"kind": "acp", "acp": acp}}}))
        command = [PROGRAM, "doctor", "--config", "hub.yaml", "--data-dir", "data", "--output", "json"]
        run = subprocess.run(command, cwd=self.path, env=self.env, capture_output=True, text=True, timeout=180)
        found = json.loads(run.stdout)
        until("an end of all servers", lambda: not left())
        return found

    def test_servers_that_are_programs(self):
        found = self.doctor({
            "rust": {"command": str(SERVER)},
            "modern": {"command": str(SERVER), "args": ["modern"]},
            "dies": {"command": str(SERVER), "args": ["die"]},
            "hangs": {"command": str(SERVER), "args": ["hang"]},
            "gone": {"command": "no-such-server"},
            "off": {"command": str(SERVER), "disabled": True},
        })
        announced = found["announcements"]["coder"]
        statuses = {name: health["status"] for name, health in announced["mcp_health"].items()}
        self.assertEqual(statuses, {
            "rust": "ok", "modern": "ok", "dies": "failed", "hangs": "timeout", "gone": "failed", "off": "disabled",
        }, announced)
        self.assertIn("out of cheese", announced["mcp_health"]["dies"]["detail"])
        self.assertGreaterEqual(announced["mcp_health"]["rust"]["latency_ms"], 0)
        words = json.dumps(found["findings"])
        self.assertIn("schema-agent 1.0.0", words)
        self.assertIn("MCP server dies: failed", words)

    def test_a_server_behind_a_token(self):
        server = Process(str(SERVER), "http")
        try:
            place = {"type": "http", "url": server.line}
            found = self.doctor({
                "stranger": place,
                "friend": place | {"headers": {"Authorization": "Bearer ${TOKEN:-let-me-in}"}},
            })
        finally:
            server.stop()
        health = found["announcements"]["coder"]["mcp_health"]
        self.assertEqual((health["stranger"]["status"], health["friend"]["status"]), ("needs_auth", "ok"), health)
        self.assertNotIn("let-me-in", json.dumps(found))

    @unittest.skipUnless(EVERYTHING.exists(), "!!! npm could not install the reference server: it is NOT tested")
    def test_the_reference_server_over_every_transport(self):
        ports = {kind: free_port() for kind in ("streamableHttp", "sse")}
        running = []
        for kind, port in ports.items():
            env = {"PATH": "/usr/bin:/bin", "HOME": self.folder.name, "PORT": str(port)}
            command = ["node", str(EVERYTHING), kind]
            running.append(subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        try:
            for port in ports.values():
                until("the reference server", lambda: listening(port))
            found = self.doctor({
                "pipes": {"command": "node", "args": [str(EVERYTHING), "stdio"]},
                "http": {"type": "http", "url": f"http://127.0.0.1:{ports['streamableHttp']}/mcp"},
                "events": {"type": "sse", "url": f"http://127.0.0.1:{ports['sse']}/sse"},
            })
        finally:
            for process in running:
                process.terminate()
                process.wait(10)
        health = found["announcements"]["coder"]["mcp_health"]
        self.assertEqual({name: one["status"] for name, one in health.items()}, {"pipes": "ok", "http": "ok", "events": "ok"}, health)

    def own(self, kind, settings):
        """What the doctor announces of a published agent, with the servers of its own configuration."""
        (self.path / "work").mkdir(exist_ok=True)
        fixed = {"folder": str(self.path / "work"), "home": self.folder.name, "path": "/usr/bin:/bin"}
        section = {"kind": kind, kind.replace("-", "_"): fixed | settings}
        (self.path / "hub.yaml").write_text(json.dumps({"agents": {"coder": section}}))
        command = [PROGRAM, "doctor", "--config", "hub.yaml", "--data-dir", "data", "--output", "json"]
        run = subprocess.run(command, cwd=self.path, env=self.env, capture_output=True, text=True, timeout=180)
        health = json.loads(run.stdout)["announcements"]["coder"]["mcp_health"]
        return {name: one["status"] for name, one in health.items()}

    @unittest.skipUnless(CLAUDE.exists(), "!!! npm could not install Claude Code: its own servers are NOT tested")
    def test_the_own_servers_of_claude_code(self):
        (self.path / "work").mkdir()
        add = [str(CLAUDE), "mcp", "add", "--scope"]
        for scope, name, server in (
            ("user", "mine", SERVER), ("local", "here", SERVER), ("project", "ours", SERVER), ("user", "ours", "/bin/false")
        ):
            done = subprocess.run([*add, scope, name, str(server)], cwd=self.path / "work", env=self.env, capture_output=True)
            self.assertEqual(done.returncode, 0, done)
        seen = self.own("claude-code", {"program": str(CLAUDE)})
        self.assertEqual(seen, {"mine": "ok", "here": "ok", "ours": "ok"})
        seen = self.own("claude-code", {"program": str(CLAUDE), "setting_sources": ["user"]})
        self.assertEqual(seen, {"mine": "ok", "ours": "failed"})

    @unittest.skipUnless(CODEX.exists(), "!!! npm could not install Codex: its own servers are NOT tested")
    def test_the_own_servers_of_codex(self):
        (self.path / "work").mkdir()
        add = [str(CODEX), "mcp", "add"]
        done = subprocess.run([*add, "mine", "--", str(SERVER)], cwd=self.path / "work", env=self.env, capture_output=True)
        self.assertEqual(done.returncode, 0, done)
        options = ["-c", 'mcp_servers.dead.command="/bin/false"']
        seen = self.own("codex", {"program": str(CODEX), "arguments": options})
        self.assertEqual(seen, {"mine": "ok", "dead": "failed"})

    @unittest.skipUnless(OPENCODE.exists(), "!!! npm could not install opencode: its own servers are NOT tested")
    def test_the_own_servers_of_opencode(self):
        (self.path / "work").mkdir()
        servers = {
            "mine": {"type": "local", "command": [str(SERVER)]},
            "off": {"type": "local", "command": [str(SERVER)], "enabled": False},
        }
        (self.path / "work/opencode.json").write_text(json.dumps({"mcp": servers}))
        seen = self.own("opencode", {"program": str(OPENCODE)})
        self.assertEqual(seen, {"mine": "ok", "off": "disabled"})


if __name__ == "__main__":
    unittest.main()
