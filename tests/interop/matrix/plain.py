"""What an SDK handed out, in one plain form for both versions of the protocol, so that a cell is written once."""

import base64


def _drop_empty(fields):
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}


def _file(part):
    """A file in the form of 1.0: its bytes decoded, so that spellings of base64 do not matter."""
    raw = {"raw": base64.b64decode(part["raw"])} if "raw" in part else {"url": part["url"]}
    return _drop_empty({**raw, "filename": part.get("filename"), "mediaType": part.get("mediaType")})


def part_of(part):
    """A part of either version. The media type of a text is left out: 0.3 has no place for it."""
    metadata = _drop_empty({"metadata": part.get("metadata")})
    if part.get("kind") == "file":
        file = part["file"]
        names = {"bytes": "raw", "uri": "url", "name": "filename", "mimeType": "mediaType"}
        return _file({names[name]: value for name, value in file.items() if value is not None}) | metadata
    if "text" in part:
        return {"text": part["text"]} | metadata
    if "data" in part:
        return {"data": part["data"]} | metadata
    return _file(part) | metadata


def message_of(message):
    return {
        "id": message["messageId"],
        "role": message["role"].removeprefix("ROLE_").lower(),
        "parts": [part_of(part) for part in message["parts"]],
        "task_id": message.get("taskId") or None,
        "context_id": message.get("contextId") or None,
    }


def state_of(status):
    return status["state"].removeprefix("TASK_STATE_").upper().replace("-", "_")


def said_in(status):
    """The text of a status; None where it has no message, or one that an SDK made up and left empty."""
    message = status.get("message")
    return "".join(part.get("text", "") for part in message["parts"]) or None if message else None


def artifact_of(artifact):
    parts = [part_of(part) for part in artifact["parts"]]
    return {"id": artifact["artifactId"], "name": artifact.get("name") or None, "parts": parts}


def task_of(task):
    return {
        "id": task["id"],
        "context_id": task["contextId"],
        "state": state_of(task["status"]),
        "said": said_in(task["status"]),
        "artifacts": [artifact_of(artifact) for artifact in task.get("artifacts") or []],
        "history": [message_of(message) for message in task.get("history") or []],
    }


def status_of(update):
    return {
        "task_id": update["taskId"],
        "context_id": update["contextId"],
        "state": state_of(update["status"]),
        "said": said_in(update["status"]),
        "final": update.get("final"),
    }


def chunk_of(update):
    return {
        "task_id": update["taskId"],
        "context_id": update["contextId"],
        "append": bool(update.get("append")),
        "last": bool(update.get("lastChunk")),
        **artifact_of(update["artifact"]),
    }


def event_of(event):
    """A kind and the plain form of what it holds, from a stream response of 1.0 or a result of 0.3."""
    if "kind" in event:
        kind, value = event["kind"], event
    else:
        [(kind, value)] = event.items()
    match kind:
        case "task":
            return "task", task_of(value)
        case "statusUpdate" | "status-update":
            return "status", status_of(value)
        case "artifactUpdate" | "artifact-update":
            return "artifact", chunk_of(value)
        case "message":
            return "message", message_of(value)
    raise AssertionError(f"an event of the kind {kind}")


def json_of(part):
    """A plain part in the JSON form of 1.0."""
    return part | {"raw": base64.b64encode(part["raw"]).decode()} if "raw" in part else part
