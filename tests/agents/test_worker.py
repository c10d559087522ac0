"""Published agents that a worker runs for a hub elsewhere: what works in the hub works through a worker."""

import json
import pathlib
import tempfile
import unittest

import test_acp
import test_claude_code
import test_codex
from hub import PROGRAMS, Hub, Worker, alive, messages_api, reply, running, state, until

PLAIN = PROGRAMS / "acp-agent"
INSTALLED = all(one.exists() for one in (
    test_claude_code.CLAUDE, test_acp.ADAPTER, test_acp.OPENCODE, test_codex.CODEX, PLAIN))
# Each of the kinds, by what does its work.
ALL = ("coder", "claude", "opencode", "codex")
SLOW = 300


@unittest.skipUnless(INSTALLED, "!!! the agent programs could not be installed: they are NOT tested through a worker")
class ThroughAWorker(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.messages, cls.responses = messages_api(), test_codex.responses_api()
        cls.folder = tempfile.TemporaryDirectory(prefix="flotilla-worker-")
        cls.path = pathlib.Path(cls.folder.name)
        agents = test_acp.agents(cls.messages, cls.path)
        agents = {name: agents[name] for name in ("claude", "equipped", "opencode")}
        agents["coder"] = test_claude_code.agent(cls.messages, cls.path)
        agents["codex"] = test_codex.agent(cls.responses, cls.path)
        agents["plain"] = {"kind": "acp", "acp": {"program": str(PLAIN), "folder": cls.folder.name, "permission": "allow"}}
        # Paid for, if it were not for the stand-ins; one that cannot sign in, and one that is not there.
        for name in ALL:
            section = agents[name]["kind"].replace("-", "_")
            agents[name][section]["probe"] = {"every": "6h", "prompt": "say ready", "timeout": "5m"}
        agents["locked"] = test_claude_code.agent(cls.messages, cls.path)
        agents["locked"]["claude_code"]["probe"] = {"every": "6h", "prompt": "fail 401 no such key"}
        agents["absent"] = {"kind": "codex", "codex": {"program": "/nowhere/codex", "folder": cls.folder.name}}
        cls.hub = Hub({"echo": {"kind": "echo"}})
        cls.worker = Worker(cls.hub, agents, {"STAND_IN_KEY": "sk-stand-in"})

    @classmethod
    def tearDownClass(cls):
        cls.worker.stop()
        cls.hub.remove()
        cls.messages.stop()
        cls.responses.stop()
        cls.folder.cleanup()

    def test_a_reply_and_a_conversation_that_goes_on(self):
        for agent in ALL:
            with self.subTest(agent):
                first = self.hub.send(agent, "say Hello there", contextId=f"talk-{agent}")
                self.assertEqual((state(first), reply(first)), ("COMPLETED", "Hello there"), first)
                self.assertIn("input_tokens", self.hub.log(first))
        self.worker.restart()
        for agent in ALL:
            with self.subTest(agent):
                second = self.hub.send(agent, "say Again", contextId=f"talk-{agent}")
                self.assertEqual((state(second), reply(second)), ("COMPLETED", "Again"), second)
                self.assertNotIn("anew", self.hub.log(second))
                until("nothing is left", lambda: alive(second) == 0)
        self.assertEqual(reply(self.hub.send("plain", "everything")), "Hello, permission: allow")

    def test_a_long_prompt_that_looks_like_an_option(self):
        long = "--help " + "x" * 300_000
        for agent in ALL:
            with self.subTest(agent):
                self.assertIn(f"{len(long)} characters: --help", reply(self.hub.send(agent, long)))

    def test_leave_is_the_owners_to_give(self):
        for agent, tool in {"coder": "Bash", **test_acp.LEAVE}.items():
            with self.subTest(agent):
                file = self.path / f"work/{agent}-worker.txt"
                use = json.dumps({"command": f"echo hi > {file.name}", "description": "writes"})
                task = self.hub.send(agent, f"use {tool} {use}\nsay done", wait=False)
                find = lambda: self.hub.http(f"/api/approvals?state=open&task={task['id']}")["approvals"]
                asked = until("a question to the owner", find, SLOW)[0]
                self.hub.http(f"/api/approvals/{asked['id']}", {"decision": "allow"})
                until("the end", lambda: state(self.hub.task(agent, task)) != "WORKING", SLOW)
                self.assertTrue(file.exists(), self.hub.log(task))

    def test_a_cancel_ends_all_of_it(self):
        for agent, tool, name, more, number in (
            ("codex", "exec_command", "cmd", {"yield_time_ms": 60_000}, 61301),
            ("equipped", "Bash", "command", {"description": "waits"}, 61302),
        ):
            with self.subTest(agent):
                words = ("python3", "-c", f"import time; time.sleep({number})")
                use = json.dumps({name: f"{words[0]} {words[1]} '{words[2]}'"} | more)
                task = self.hub.send(agent, f"use {tool} {use}", wait=False)
                until("its command", lambda: running(*words), SLOW)
                canceled = self.hub.http(f"/agents/{agent}/tasks/{task['id']}:cancel", {})
                self.assertEqual((state(canceled), alive(task), running(*words)), ("CANCELED", 0, False))

    def test_probe_turns_and_what_is_announced_of_them(self):
        for agent in ALL:
            with self.subTest(agent):
                look = lambda: self.hub.worker(agent).get("lastSuccess")
                until("a turn that ended well", look, SLOW)
                until("it is available", lambda: self.hub.worker(agent)["health"] == "AVAILABLE")
                used = self.hub.http(f"/api/usage?agent={agent}")["total"]
                self.assertGreater(used["inputTokens"], 0)
        until("it is broken", lambda: "not signed in" in self.hub.worker("locked").get("reason", ""), SLOW)
        self.assertIn("/nowhere/codex", self.hub.worker("absent")["reason"])
        for agent in ("coder", "claude"):
            self.assertTrue(self.hub.worker(agent)["announce"]["worker"].get("model"), agent)

    def test_the_doctor_says_which_are_installed_and_signed_in(self):
        found = json.dumps(self.worker.doctor()["findings"])
        for expected in ("coder: 2.", "(Claude Code), signed in", "codex: codex-cli", "opencode: ", "/nowhere/codex"):
            self.assertIn(expected, found)


if __name__ == "__main__":
    unittest.main()
