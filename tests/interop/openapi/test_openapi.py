"""The hub's description of its own API: valid OpenAPI 3.1, and true of what the hub answers."""

import json
import os
import urllib.error
import urllib.request

import pytest
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

HUB, KEY = os.environ["FLOTILLA_URL"], os.environ["FLOTILLA_OWNER_KEY"]


def call(verb, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    request = urllib.request.Request(HUB + path, data=data, headers=headers, method=verb)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            status, text = answer.status, answer.read()
    except urllib.error.HTTPError as refused:
        status, text = refused.code, refused.read()
    return status, json.loads(text) if text else None


@pytest.fixture(scope="module")
def description():
    status, document = call("GET", "/api/openapi.json")
    assert status == 200
    return document


def fits(description, path, verb, status, value):
    """Whether an answer is what the description says."""
    operation = description["paths"][path][verb]
    response = operation["responses"].get(str(status), operation["responses"]["default"])
    if "$ref" in response:
        response = description["components"]["responses"][response["$ref"].rsplit("/", 1)[1]]
    if value is None:
        assert "content" not in response
        return
    schema = {**response["content"]["application/json"]["schema"], "components": description["components"]}
    errors = [f"{list(error.path)}: {error.message}" for error in OAS31Validator(schema).iter_errors(value)]
    assert errors == []


def test_it_is_valid(description):
    assert list(OpenAPIV31SpecValidator(description).iter_errors()) == []


def test_agents_are_as_described(description):
    peer = os.environ["FLOTILLA_PEER_PYTHON"]
    status, found = call("POST", "/api/agents/discover", {"url": peer})
    assert (status, found["found"], found["usable"]) == (200, True, True), found
    fits(description, "/api/agents/discover", "post", status, found)
    status, added = call("POST", "/api/agents", {"name": "described", "url": peer, "description": "Described."})
    assert status == 201, added
    fits(description, "/api/agents", "post", status, added)
    for verb, path, target, body in [
        ("GET", "/api/agents", "/api/agents?q=described", None),
        ("GET", "/api/agents", "/api/agents?colour=red", None),
        ("GET", "/api/agents/{name}", "/api/agents/described", None),
        ("POST", "/api/agents/{name}/check", "/api/agents/described/check", {}),
        ("PATCH", "/api/agents/{name}", "/api/agents/described", {"description": "Again."}),
        ("PUT", "/api/agents/{name}", "/api/agents/described", {"url": peer}),
        ("DELETE", "/api/agents/{name}", "/api/agents/described", None),
        ("GET", "/api/agents/{name}", "/api/agents/described", None),
    ]:
        status, value = call(verb, target, body)
        fits(description, path, verb.lower(), status, value)
    assert status == 404, value


def test_keys_deliveries_and_tickets_are_as_described(description):
    status, made = call("POST", "/api/keys", {"name": "described", "scopes": ["agents:read"]})
    assert status == 201, made
    fits(description, "/api/keys", "post", status, made)
    for verb, path, target in [
        ("GET", "/api/keys", "/api/keys"),
        ("POST", "/api/keys/{name}:rotate", "/api/keys/described:rotate"),
        ("DELETE", "/api/keys/{name}", "/api/keys/described-2"),
        ("GET", "/api/deliveries", "/api/deliveries"),
        ("POST", "/api/ws-ticket", "/api/ws-ticket"),
    ]:
        status, value = call(verb, target)
        assert status < 300, value
        fits(description, path, verb.lower(), status, value)


def test_a_log_is_as_described(description):
    message = {"messageId": "described", "role": "ROLE_USER", "parts": [{"text": "tell it"}]}
    status, sent = call("POST", "/agents/echo/message:send", {"message": message})
    assert status == 200, sent
    status, log = call("GET", f"/api/tasks/{sent['task']['id']}/log")
    fits(description, "/api/tasks/{id}/log", "get", status, log)
