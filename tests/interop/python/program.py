"""The command line and agents for it to talk to, as processes."""

import contextlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PROGRAM = os.environ["FLOTILLA_PROGRAM"]


@contextlib.contextmanager
def agent(*options):
    """An agent of the official SDK in a process of its own; its URL."""
    command = [sys.executable, "-B", str(Path(__file__).with_name("agent.py")), *options]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            url = process.stdout.readline().strip()
            assert url, "the agent did not start"
            yield url
        finally:
            process.stdin.close()


@dataclass
class Ran:
    code: int
    out: str
    err: str

    def ok(self):
        assert self.code == 0, self
        return self

    def json(self):
        return json.loads(self.out)

    def lines(self):
        return [json.loads(line) for line in self.out.splitlines()]

    def field(self, label):
        return next(line[len(label) + 2 :] for line in self.out.splitlines() if line.startswith(f"{label}: "))

    def error(self):
        return self.json()["error"]["code"]


class Program:
    """`flotilla` with a home of its own, always with the same last options."""

    def __init__(self, home, *options):
        self.home, self.options = home, options

    def environment(self, more):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("FLOTILLA_", "A2ACLI_"))}
        return {**kept, "HOME": str(self.home), **more}

    def start(self, *words, **env):
        return subprocess.Popen(
            [PROGRAM, *words, *self.options],
            cwd=self.home,
            env=self.environment(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words, stdin=None, **env):
        done = subprocess.run(
            [PROGRAM, *words, *self.options],
            cwd=self.home,
            env=self.environment(env),
            input=stdin or "",
            capture_output=True,
            text=True,
            timeout=30,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def ok(self, *words, **how):
        return self.run(*words, **how).ok()

    def json(self, *words, **how):
        return self.ok(*words, "-o", "json", **how).json()
