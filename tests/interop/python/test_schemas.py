"""The published schemas of the fleet handshake, held against its examples by a validator that is not ours."""

import httpx
import jsonschema
import pytest

from conftest import URL

ANNOUNCE = {
    "type": "SESSION_ANNOUNCE", "protocol_version": "2.0",
    "worker": {"agent_id": "claude-code", "model": "claude-sonnet-4-20250514", "model_tier": "sonnet",
               "context_window": 200000},
    "capabilities": {"tools": ["browser", "terminal", "file", "patch"],
                     "mcp_servers": ["context_mode", "claude_mem", "trek"]},
    "mcp_health": {"context_mode": "ok", "claude_mem": "ok", "trek": "timeout"},
    "session": {"context_id": "handshake:hermes-switch", "active_tasks": 2,
                "repo_state": {"branch": "main", "clean": True}, "session_fresh": True},
}
DISPATCH = {
    "type": "TASK_DISPATCH", "protocol_version": "2.0",
    "task": {"task_id": "abc-123", "priority": "high", "reply_schema": "structured", "token_budget": 4000},
    "requirements": {"required_mcp": ["context_mode"], "required_capabilities": ["terminal", "file"]},
    "deadline": "2026-05-31T21:00:00Z",
    "brief": "Refactor the auth module. Focus on token refresh logic...",
}
RESULT = {
    "type": "TASK_RESULT", "protocol_version": "2.0", "task_id": "abc-123", "status": "done", "tokens_spent": 3240,
    "next_steps": ["Run the full test suite to verify refactor", "Open PR for review"], "blocked_reason": None,
    "artifacts": {"pr": "https://git.example/pull/72",
                  "files_changed": ["src/auth/token_refresh.py", "tests/auth/test_token_refresh.py"]},
}
EXAMPLES = {"session-announce": ANNOUNCE, "task-dispatch": DISPATCH, "task-result": RESULT}


def validator(name):
    answer = httpx.get(f"{URL}/schemas/fleet/{name}.json")
    assert answer.status_code == 200
    schema = answer.json()
    kind = jsonschema.validators.validator_for(schema)
    kind.check_schema(schema)
    return kind(schema)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_valid_and_so_is_one_of_a_later_version(name):
    validator(name).validate(EXAMPLES[name])
    validator(name).validate({**EXAMPLES[name], "added_later": {"n": 1}})


@pytest.mark.parametrize("name, wrong", [
    ("session-announce", {"type": "TASK_RESULT"}),
    ("session-announce", {"worker": "claude-code"}),
    ("task-dispatch", {"brief": 7}),
    ("task-dispatch", {"task": {"priority": "soon"}}),
    ("task-dispatch", {"task": {"token_budget": -1}}),
    ("task-result", {"status": "finished"}),
    ("task-result", {"next_steps": "merge"}),
    ("session-announce", {"protocol_version": "3.0"}),
    ("session-announce", {"worker": {"agent_id": " "}}),
    ("session-announce", {"worker": {"agent_id": "a", "usd_per_million_tokens": -1}}),
    ("session-announce", {"capabilities": {"max_concurrent": 0}}),
    ("session-announce", {"capabilities": {"max_concurrent": 2**40}}),
    ("session-announce", {"capabilities": {"tools": [str(n) for n in range(1001)]}}),
    ("session-announce", {"mcp_health": {str(n): "ok" for n in range(1001)}}),
    ("session-announce", {"worker": {"agent_id": "a", "model": "m" * 4097}}),
    ("task-dispatch", {"brief": " "}),
    ("task-dispatch", {"task": {"token_budget": 0}}),
    ("task-dispatch", {"task": {"budget": {"max_total_tokens": 0}}}),
    ("task-dispatch", {"task": {"budget": {"max_output_tokens": 0}}}),
    ("task-dispatch", {"task": {"budget": {"max_cost_usd": 0}}}),
    ("task-dispatch", {"task": {"json_schema": {}}}),
    ("task-dispatch", {"task": {"json_schema": {}, "reply_schema": "prose"}}),
    ("task-result", {"status": "blocked"}),
    ("task-result", {"status": "blocked", "blocked_reason": "no idea\nwhy"}),
    ("task-result", {"status": "error"}),
    ("task-result", {"status": "error", "error": " "}),
    ("task-result", {"status": "partial"}),
    ("task-result", {"status": "partial", "remaining": []}),
    ("task-result", {"usage": {"cost_usd": -1}}),
])
def test_a_slip_is_found(name, wrong):
    with pytest.raises(jsonschema.ValidationError):
        validator(name).validate({**EXAMPLES[name], **wrong})


@pytest.mark.parametrize("name, right", [
    ("session-announce", {"protocol_version": "2"}),
    ("session-announce", {"mcp_health": {"trek": "weird", "mem": {"status": "weird"}}}),
    ("session-announce", {"capabilities": {"max_concurrent": None}}),
    ("task-dispatch", {"task": {"json_schema": {}, "reply_schema": "json"}}),
    ("task-dispatch", {"task": {"json_schema": None, "budget": {"max_cost_usd": 0.01}}}),
    ("task-result", {"status": "blocked", "blocked_reason": "moon_phase"}),
    ("task-result", {"status": "error", "error": "It broke."}),
    ("task-result", {"status": "partial", "remaining": ["the rest"], "usage": {"cost_usd": 0}}),
])
def test_what_the_hub_takes_is_valid(name, right):
    validator(name).validate({**EXAMPLES[name], **right})
