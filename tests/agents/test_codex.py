"""The published Codex as an agent of a real hub, against a stand-in for its model."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from hub import AGENTS, HERE, Hub, Process, alive, reply, running, state, until

CODEX = AGENTS / "@openai/codex/bin/codex.js"


def agent(api, path, **settings):
    """Nothing of this machine: a home, a folder and a PATH of its own, and a key that is none."""
    for name in ("home", "work"):
        (path / name).mkdir(exist_ok=True)
    provider = f'{{name="stub",base_url="{api.line}/v1",env_key="STUB_KEY",wire_api="responses"}}'
    options = ["-c", 'model_provider="stub"', "-c", f"model_providers.stub={provider}"]
    fixed = {
        "program": str(CODEX), "arguments": options, "model": "stub-1", "folder": str(path / "work"),
        "home": str(path / "home"), "path": "/usr/bin:/bin", "env": {"STUB_KEY": "env:STAND_IN_KEY"},
        # The machine that runs the tests may not allow a sandbox inside its own.
        "sandbox": "danger-full-access",
    }
    return {"kind": "codex", "codex": fixed | settings}


def responses_api():
    return Process(sys.executable, "-B", str(HERE / "responses_api.py"))


@unittest.skipUnless(CODEX.exists(), "!!! npm could not install Codex: it is NOT tested")
class Codex(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.api = responses_api()
        cls.folder = tempfile.TemporaryDirectory(prefix="flotilla-codex-")
        cls.path = pathlib.Path(cls.folder.name)
        codex = agent(cls.api, cls.path, git={"evidence": True})
        git = lambda *words: subprocess.run(["git", *words], cwd=cls.path / "work", check=True, capture_output=True)
        git("init", "-q", "-b", "main", ".")
        git("-c", "user.email=a@b.example", "-c", "user.name=A", "commit", "-q", "--allow-empty", "-m", "first")
        cls.hub = Hub({"codex": codex}, {"STAND_IN_KEY": "sk-stand-in"})

    @classmethod
    def tearDownClass(cls):
        cls.hub.remove()
        cls.api.stop()
        cls.folder.cleanup()

    def test_a_reply_and_what_the_owner_sees_of_it(self):
        task = self.hub.send("codex", "think hm\nsay Hello there")
        self.assertEqual((state(task), reply(task)), ("COMPLETED", "Hello there"), task)
        log = self.hub.log(task)
        for expected in ("thinking", "input_tokens"):
            self.assertIn(expected, log)
            self.assertNotIn(expected, json.dumps(task))
        self.assertEqual(alive(task), 0)

    def test_a_tool_and_what_git_saw_of_it(self):
        use = json.dumps({"cmd": "echo hi > made.txt"})
        task = self.hub.send("codex", f"use exec_command {use}\nsay done")
        self.assertEqual(state(task), "COMPLETED", task)
        self.assertTrue(reply(task).endswith("done"), task)
        log = self.hub.log(task)
        self.assertIn("tool_use", log)
        self.assertIn("made.txt", log)
        self.assertIn('\\"files_changed\\":[\\"made.txt\\"]'.replace("\\", ""), log.replace(" ", "").replace("\\", ""))

    def test_a_conversation_goes_on_and_each_turn_has_its_own_usage(self):
        first = self.hub.send("codex", "say one", contextId="talk")
        self.hub.restart()
        second = self.hub.send("codex", "say two", contextId="talk")
        self.assertEqual((reply(first), reply(second)), ("one", "two"))
        for task in (first, second):
            self.assertIn('"input_tokens":8', self.hub.log(task).replace(" ", "").replace("\\", ""))
        for file in (self.path / "home/.codex/sessions").rglob("*.jsonl"):
            file.unlink()
        third = self.hub.send("codex", "say three", contextId="talk")
        self.assertEqual((state(third), reply(third)), ("COMPLETED", "three"), self.hub.log(third))

    def test_a_long_prompt_one_that_looks_like_an_option_and_a_failure(self):
        long = "--help " + "x" * 300_000
        self.assertIn(f"{len(long)} characters: --help", reply(self.hub.send("codex", long)))
        failed = self.hub.send("codex", "fail 400 no such model")
        self.assertEqual(state(failed), "FAILED")
        self.assertIn("no such model", json.dumps(failed["status"]))

    def test_a_cancel_ends_all_of_it(self):
        use = json.dumps({"cmd": "sleep 61234", "yield_time_ms": 60_000})
        task = self.hub.send("codex", f"use exec_command {use}", wait=False)
        until("its command", lambda: running("sleep", "61234"))
        canceled = self.hub.http(f"/agents/codex/tasks/{task['id']}:cancel", {})
        self.assertEqual((state(canceled), alive(task), running("sleep", "61234")), ("CANCELED", 0, False))


if __name__ == "__main__":
    unittest.main()
