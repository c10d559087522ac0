"""Published agents that speak ACP as agents of a real hub, against a stand-in for their model."""

import json
import pathlib
import tempfile
import unittest

from hub import AGENTS, PROGRAMS, Hub, alive, messages_api, reply, running, state, until

ADAPTER = AGENTS / "@agentclientprotocol/claude-agent-acp/dist/index.js"
OPENCODE = AGENTS / "opencode-linux-x64/bin/opencode"
EVERYTHING = AGENTS / "@modelcontextprotocol/server-everything/dist/index.js"
# Commands that want leave, in each agent's own words.
LEAVE = {"claude": "Bash", "opencode": "bash"}
# These programs take long to start on a busy machine.
SLOW = 300


def agents(api, path):
    """Nothing of this machine: a home, a folder and a PATH of its own, and a key that is none."""
    servers = {"everything": {"command": "node", "args": [str(EVERYTHING), "stdio"]}}
    (path / "servers.json").write_text(json.dumps({"mcpServers": servers}))
    settings = {
        "model": "anthropic/claude-sonnet-4-5", "autoupdate": False, "share": "disabled",
        "permission": {"bash": "ask", "edit": "ask"},
        "provider": {"anthropic": {"options": {"baseURL": f"{api.line}/v1", "apiKey": "{env:STAND_IN_KEY}"}}},
    }
    for name in ("home", "work", "home/.config", "home/.config/opencode"):
        (path / name).mkdir(exist_ok=True)
    (path / "home/.config/opencode/opencode.json").write_text(json.dumps(settings))
    place = {"folder": str(path / "work"), "home": str(path / "home"), "path": "/usr/bin:/bin"}
    env = {
        "ANTHROPIC_BASE_URL": api.line, "ANTHROPIC_API_KEY": "env:STAND_IN_KEY",
        "CLAUDE_CONFIG_DIR": str(path / "home/config"), "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }
    adapter = place | {"program": "node", "arguments": [str(ADAPTER)], "env": env}
    found = {}
    if ADAPTER.exists():
        found["claude"] = {"kind": "acp", "acp": adapter}
        found["planner"] = {"kind": "acp", "acp": adapter | {"mode": "plan", "permission": "deny"}}
        found["equipped"] = {"kind": "acp", "acp": adapter | {"mcp_config": str(path / "servers.json"), "permission": "allow"}}
    if OPENCODE.exists():
        opencode = place | {"program": str(OPENCODE), "env": {"STAND_IN_KEY": "env:STAND_IN_KEY"}}
        found["opencode"] = {"kind": "opencode", "opencode": opencode}
    return found


@unittest.skipUnless(ADAPTER.exists() and OPENCODE.exists(), "!!! npm could not install the ACP agents: they are NOT tested")
class Acp(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.api = messages_api()
        cls.folder = tempfile.TemporaryDirectory(prefix="flotilla-acp-")
        cls.path = pathlib.Path(cls.folder.name)
        cls.hub = Hub(agents(cls.api, cls.path), {"STAND_IN_KEY": "sk-stand-in"})

    @classmethod
    def tearDownClass(cls):
        cls.hub.remove()
        cls.api.stop()
        cls.folder.cleanup()

    def test_a_reply_and_a_conversation_that_goes_on(self):
        for agent in LEAVE:
            with self.subTest(agent):
                first = self.hub.send(agent, "say Hello there", contextId=f"talk-{agent}")
                self.assertEqual((state(first), reply(first)), ("COMPLETED", "Hello there"), first)
                self.assertIn("input_tokens", self.hub.log(first))
                self.hub.restart()
                second = self.hub.send(agent, "say Again", contextId=f"talk-{agent}")
                self.assertEqual((state(second), reply(second)), ("COMPLETED", "Again"), second)
                self.assertNotIn("begun anew", self.hub.log(second))
                sessions = json.loads((self.hub.path / f"data/agents/{agent}/sessions.json").read_text())["sessions"]
                self.assertEqual(len([one for one in sessions if one["context"] == f"talk-{agent}"]), 1)
                self.assertEqual(alive(first) + alive(second), 0)

    def test_a_long_prompt_and_one_that_looks_like_an_option(self):
        long = "--help " + "x" * 300_000
        self.assertIn(f"{len(long)} characters: --help", reply(self.hub.send("claude", long)))

    def question(self, task):
        """What the owner is asked for a task, once it is."""
        def find():
            asked = self.hub.http("/api/approvals?state=open")["approvals"]
            return [one for one in asked if one["taskId"] == task["id"]]

        return until("a question to the owner", find, SLOW)[0]

    def test_leave_is_the_owners_to_give(self):
        for agent, tool in LEAVE.items():
            for decision in ("deny", "allow"):
                with self.subTest(f"{agent} {decision}"):
                    file = self.path / f"work/{agent}-{decision}.txt"
                    use = json.dumps({"command": f"echo hi > {file.name}", "description": "writes"})
                    task = self.hub.send(agent, f"use {tool} {use}\nsay done", wait=False)
                    asked = self.question(task)
                    self.assertIn(file.name, json.dumps(asked))
                    self.hub.http(f"/api/approvals/{asked['id']}", {"decision": decision})
                    until("the end", lambda: state(self.hub.task(agent, task)) != "WORKING", SLOW)
                    self.assertEqual(file.exists(), decision == "allow")
                    log = self.hub.log(task)
                    self.assertIn("tool_use", log)
                    told = {name: value for name, value in self.hub.task(agent, task).items() if name != "history"}
                    self.assertNotIn(file.name, json.dumps(told))
                    self.assertEqual(alive(task), 0)

    def test_a_mode_and_servers_of_the_configuration(self):
        task = self.hub.send("planner", "say planned")
        # The program may add words of its own about its modes.
        self.assertEqual((state(task), reply(task)[:7]), ("COMPLETED", "planned"), task)
        task = self.hub.send("equipped", 'use mcp__everything__echo {"message":"ping pong"}\nsay done')
        self.assertEqual(state(task), "COMPLETED", task)
        self.assertIn("ping pong", reply(task))

    def test_a_cancel_ends_all_of_it(self):
        # Not by `sleep`, which the program does not let its model use.
        words = ("python3", "-c", "import time; time.sleep(61235)")
        use = json.dumps({"command": f"{words[0]} {words[1]} '{words[2]}'", "description": "waits"})
        task = self.hub.send("equipped", f"use Bash {use}", wait=False)
        until("its command", lambda: running(*words), SLOW)
        self.assertGreater(alive(task), 0)
        canceled = self.hub.http(f"/agents/equipped/tasks/{task['id']}:cancel", {})
        self.assertEqual((state(canceled), alive(task), running(*words)), ("CANCELED", 0, False))


@unittest.skipUnless((PROGRAMS / "acp-agent").exists(), "!!! the test programs were not built: they are NOT tested")
class OnThePublishedSchema(unittest.TestCase):
    """An agent written on the published types of ACP: what it takes and gives is what the schema says."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="flotilla-acp-")
        place = {"program": str(PROGRAMS / "acp-agent"), "folder": cls.folder.name}
        make = lambda **settings: {"kind": "acp", "acp": place | settings}
        cls.hub = Hub({
            "plain": make(permission="allow"),
            "coding": make(permission="deny", mode="code", model="large"),
            "signed": make(env={"LOCKED": "yes"}, sign_in="key"),
            "locked": make(env={"LOCKED": "yes"}),
        })

    @classmethod
    def tearDownClass(cls):
        cls.hub.remove()
        cls.folder.cleanup()

    def test_all_that_an_agent_says(self):
        task = self.hub.send("plain", "everything")
        self.assertEqual((state(task), reply(task)), ("COMPLETED", "Hello, permission: allow"), task)
        log = self.hub.log(task)
        for expected in ("thinking", "let me see", "tool_use", "grep", "tool_result", "progress", "input_tokens"):
            self.assertIn(expected, log)
            self.assertNotIn(expected, json.dumps(task))

    def test_settings_and_signing_in(self):
        self.assertEqual(reply(self.hub.send("coding", "settings")), "mode code, model large")
        self.assertEqual(reply(self.hub.send("signed", "settings")), "mode ask, model small")
        task = self.hub.send("locked", "settings")
        self.assertEqual(state(task), "FAILED")
        self.assertIn("not signed in", json.dumps(task))

    def test_files_and_sessions(self):
        # A file of text is told as words, whatever it is called; another is a file.
        words = {"raw": "aGk=", "mediaType": "application/pdf", "filename": "a.pdf"}
        other = {"raw": "/wA=", "mediaType": "application/pdf", "filename": "b.pdf"}
        task = self.hub.send("plain", "", parts=[{"text": "count"}, words, other], contextId="c")
        self.assertEqual(reply(task), "text, text, resource; turn 1")
        self.assertEqual(reply(self.hub.send("plain", "count", contextId="c")), "text; turn 2")


if __name__ == "__main__":
    unittest.main()
