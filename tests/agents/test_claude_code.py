"""The published Claude Code as an agent of a real hub, against a stand-in for its model."""

import json
import pathlib
import tempfile
import unittest

from hub import AGENTS, Hub, alive, messages_api, reply, state, until

CLAUDE = AGENTS / "@anthropic-ai/claude-code/bin/claude.exe"
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def agent(api, path, **settings):
    """Nothing of this machine: a home, a folder and a PATH of its own, and a key that is none."""
    for name in ("home", "work"):
        (path / name).mkdir(exist_ok=True)
    env = {
        "ANTHROPIC_BASE_URL": api.line,
        "ANTHROPIC_API_KEY": "env:STAND_IN_KEY",
        "CLAUDE_CONFIG_DIR": str(path / "home/config"),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    fixed = {"program": str(CLAUDE), "folder": str(path / "work"), "home": str(path / "home"), "env": env}
    return {"kind": "claude-code", "claude_code": fixed | settings}


@unittest.skipUnless(CLAUDE.exists(), "!!! npm could not install Claude Code: it is NOT tested")
class ClaudeCode(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.api = messages_api()
        cls.folder = tempfile.TemporaryDirectory(prefix="flotilla-claude-")
        cls.path = pathlib.Path(cls.folder.name)
        make = lambda **settings: agent(cls.api, cls.path, **settings)
        agents = {
            "coder": make(),
            "steered": make(follow_up="steer", allowed_tools=["Bash"]),
            "formal": make(json_schema=SCHEMA),
            "short": make(max_turns=1, allowed_tools=["Bash"]),
            "poor": make(max_budget_usd=0.0001, allowed_tools=["Bash"]),
            "hasty": make(),
        }
        agents["hasty"]["claude_code"]["env"] |= {"CLAUDE_CODE_MAX_RETRIES": "1"}
        cls.hub = Hub(agents, {"STAND_IN_KEY": "sk-stand-in"})

    @classmethod
    def tearDownClass(cls):
        cls.hub.remove()
        cls.api.stop()
        cls.folder.cleanup()

    def test_a_reply_and_what_the_owner_sees_of_it(self):
        task = self.hub.send("coder", "think hm\nsay Hello there")
        self.assertEqual((state(task), reply(task)), ("COMPLETED", "Hello there"))
        log = self.hub.log(task)
        for expected in ('"thinking": "hm"', "claude_code_version", "input_tokens", "cost_usd", "peak_memory_bytes"):
            self.assertIn(expected, log)
            self.assertNotIn(expected, json.dumps(task))

    def test_a_long_prompt_and_one_that_looks_like_an_option(self):
        long = "--help " + "x" * 300_000
        self.assertIn(f"{len(long)} characters: --help", reply(self.hub.send("coder", long)))
        self.assertIn("9 characters: --version", reply(self.hub.send("coder", "--version")))

    def test_files_and_commands_in_a_callers_words_stay_words(self):
        secret = self.path / "secret.txt"
        secret.write_text("words-of-the-owner")
        for words in (f"@{secret} what", "/help", "/clear"):
            self.assertIn(f"characters: {words[:20]}", reply(self.hub.send("coder", words)))
        kept = "".join(file.read_text() for file in (self.path / "home/config/projects").rglob("*.jsonl"))
        self.assertIn(f"@{secret} what", kept)
        self.assertNotIn("words-of-the-owner", kept)

    def test_a_conversation_goes_on_after_a_restart(self):
        context = "talk-1"
        first = self.hub.send("coder", "say one", contextId=context)
        self.assertEqual(state(first), "COMPLETED", first)
        # Taken up by the program, forgotten by the hub, and the other way round.
        self.hub.restart()
        self.assertEqual(reply(self.hub.send("coder", "say two", contextId=context)), "two")
        self.hub.stop()
        (self.hub.path / "data/agents/coder/sessions.json").unlink()
        self.hub.start()
        third = self.hub.send("coder", "say three", contextId=context)
        self.assertEqual(reply(third), "three")
        self.assertIn("gone on with", self.hub.log(third))
        # It writes until it ends.
        until("its end", lambda: alive(third) == 0)
        for file in (self.path / "home/config/projects").rglob("*.jsonl"):
            file.unlink()
        fourth = self.hub.send("coder", "say four", contextId=context)
        self.assertEqual(reply(fourth), "four")
        self.assertIn("begun anew", self.hub.log(fourth))

    def test_a_permission_is_the_owners_to_give(self):
        for decision, expected in (("allow", "made"), ("deny", "not today")):
            words = f'use Bash {{"command": "echo made > {decision}.txt && cat {decision}.txt"}}\nsay done'
            task = self.hub.send("coder", words, wait=False)
            found = until("a question", lambda: self.hub.http(f"/api/approvals?state=open&task={task['id']}")["approvals"])
            self.assertEqual(found[0]["tool"], "Bash")
            self.hub.http(f"/api/approvals/{found[0]['id']}", {"decision": decision, "note": "not today"})
            done = self.hub.ended("coder", task)
            self.assertIn(f"Bash said: {expected}", reply(done))
            self.assertEqual((self.path / "work" / f"{decision}.txt").exists(), decision == "allow")
            self.assertIn("tool_result", self.hub.log(task))

    def test_a_question_is_put_to_the_caller(self):
        asked = {"questions": [{"question": "Which color?", "header": "Color", "multiSelect": False,
                 "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]}]}
        task = self.hub.send("coder", f"use AskUserQuestion {json.dumps(asked)}\nsay done")
        self.assertEqual(state(task), "INPUT_REQUIRED", task)
        self.assertIn("Which color?\n- Red: warm", task["status"]["message"]["parts"][0]["text"])
        done = self.hub.send("coder", "say Red then", taskId=task["id"], contextId=task["contextId"])
        self.assertEqual((state(done), reply(done)), ("COMPLETED", "Red then"))

    def test_what_is_said_during_a_turn_steers_it(self):
        words = 'use Bash {"command": "until [ -e go ]; do sleep 0.05; done"}\nsay x'
        task = self.hub.send("steered", words, wait=False)
        until("the tool", lambda: "until [ -e go ]" in self.hub.log(task))
        self.hub.send("steered", "say also this", wait=False, taskId=task["id"], contextId=task["contextId"])
        (self.path / "work/go").write_text("")
        done = self.hub.ended("steered", task)
        log = self.hub.log(task)
        self.assertIn("taken_up", log)
        self.assertIn("x", reply(done))

    def test_a_reply_of_a_form_comes_as_data(self):
        task = self.hub.send("formal", 'use StructuredOutput {"name": "Flotilla"}')
        self.assertEqual(state(task), "COMPLETED", task)
        self.assertEqual(task["artifacts"][-1]["parts"][0]["data"], {"name": "Flotilla"})
        self.assertEqual(state(self.hub.send("formal", "say no")), "FAILED")

    def test_limits_of_the_program_and_errors_of_its_model(self):
        tools = 'use Bash {"command": "ls"}\n' * 3 + "say x"
        for name, words, expected in (
            ("short", tools, "limit of turns"),
            ("poor", tools, "budget"),
            ("coder", "fail 401 no such key", "not signed in"),
            ("coder", "fail 429 slow down", "usage limit"),
            ("coder", "fail 400 odd", "HTTP 400"),
        ):
            task = self.hub.send(name, words)
            self.assertEqual(state(task), "FAILED", words)
            self.assertIn(expected, task["status"]["message"]["parts"][0]["text"])

    def contract(self, budget):
        dispatch = {"type": "TASK_DISPATCH", "protocol_version": "2.0", "brief": "", "task": {"budget": budget | {"hard": True}}}
        return lambda words: {"urn:flotilla:ext:fleet-handshake:2.0": dispatch | {"brief": words}}

    def used(self, task):
        return self.hub.http(f"/api/usage?by=task&task={task['id']}")["total"]

    def test_each_call_counts_once_and_a_hard_budget_stops_the_turn(self):
        tools = 'use Bash {"command": "true"}\n'
        whole = self.hub.send("steered", tools * 3 + "say x")
        used = self.used(whole)
        self.assertEqual((used["inputTokens"], used["outputTokens"], used["incomplete"]), (44, 20, []), used)
        for budget in ({"max_total_tokens": 50}, {"max_cost_usd": 0.0005}):
            words = tools * 100 + "say x"
            task = self.hub.send("steered", words, wait=False, metadata=self.contract(budget)(words))
            self.hub.ended("steered", task, "FAILED")
            until("nothing is left", lambda: alive(task) == 0)
            self.assertLess(self.used(task)["inputTokens"], 1000)
            self.assertGreater(self.used(task)["inputTokens"], 0, "also where the program's own sum is nothing")

    def test_a_usage_limit_is_told_with_the_time_the_model_says(self):
        task = self.hub.send("hasty", "limit 2 slow down")
        self.assertEqual(state(task), "FAILED", task)
        log = self.hub.log(task).replace(" ", "").replace("\\", "")
        self.assertIn('"blocked_reason":"usage_limit","retry_after":2', log)
        self.assertIn("in 2 s", task["status"]["message"]["parts"][0]["text"])

    def test_canceled_is_said_when_nothing_is_left(self):
        task = self.hub.send("steered", 'use Bash {"command": "sleep 600"}', wait=False)
        # The message names it once, the call of the tool again.
        until("the tool", lambda: self.hub.log(task).count("sleep 600") >= 2 and alive(task) >= 3)
        canceled = self.hub.http(f"/agents/steered/tasks/{task['id']}:cancel", {})
        self.assertEqual((state(canceled), alive(task)), ("CANCELED", 0))
        used = until("what was seen of it", lambda: self.used(task) if self.used(task)["inputTokens"] else None)
        self.assertEqual(used["inputTokens"], 11, used)
        self.assertIn("costUsd", used["incomplete"])


if __name__ == "__main__":
    unittest.main()
