"""A loopback stand-in for the Messages API, in its real format, that says what its prompt tells it to.

    python3 messages_api.py

prints its URL, and ends with its standard input. What it answers is in the last message of the user; each line of it
that is a directive becomes a block of the answer:

    say TEXT            a text, in pieces
    think TEXT          a thought
    use NAME JSON       a use of a tool; its result is answered with "NAME said: RESULT", then the lines after it
    fail STATUS TEXT    an error instead of an answer, that is not to be tried again
    limit SECONDS TEXT  a rate limit (429), to be tried again after so many seconds

A message without a directive is answered with how long it is and how it begins.
"""

import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DIRECTIVE = re.compile(r"^(say|think|use|fail|limit) (.*)$", re.MULTILINE)
KINDS = {400: "invalid_request_error", 401: "authentication_error", 429: "rate_limit_error", 529: "overloaded_error"}


def texts(content):
    """The texts of a message's content, one below the other; those the program adds itself are left out."""
    if isinstance(content, str):
        return content
    found = [block["text"] for block in content if block.get("type") == "text"]
    return "\n".join(text for text in found if not text.startswith("<system-reminder>"))


def results(content):
    """What tools said, of a message's content."""
    blocks = [block for block in content if isinstance(block, dict) and block.get("type") == "tool_result"]
    said = []
    for block in blocks:
        inner = block.get("content") or ""
        said.append(inner if isinstance(inner, str) else texts(inner))
    return said


def asked(messages):
    """The directives that are still to be followed, and what the last tool said."""
    users = [message for message in messages if message["role"] == "user"]
    said = results(users[-1]["content"]) if isinstance(users[-1]["content"], list) else []
    if not said:
        return texts(users[-1]["content"]), None, 0
    # How many tools have answered since the last thing the user said.
    count = 0
    for message in reversed(users):
        answers = results(message["content"]) if isinstance(message["content"], list) else []
        if not answers:
            return texts(message["content"]), said[-1], count
        count += len(answers)
    return "", said[-1], count


def plan(messages):
    """The blocks of an answer, or an error: (status, text, headers)."""
    text, tool_said, done = asked(messages)
    lines = DIRECTIVE.findall(text)
    if not lines:
        shown = tool_said if tool_said is not None else text
        return [{"type": "text", "text": f"{len(shown)} characters: {shown[:40]}"}]
    blocks = []
    for kind, rest in lines:
        if kind == "use":
            name, _, given = rest.partition(" ")
            if done > 0:
                done -= 1
                blocks = [{"type": "text", "text": f"{name} said: {tool_said}"}] if done == 0 else []
                continue
            blocks.append({"type": "tool_use", "name": name, "input": json.loads(given or "{}")})
            return blocks
        if kind in ("fail", "limit"):
            number, _, words = rest.partition(" ")
            return (int(number), words, {"x-should-retry": "false"}) if kind == "fail" else (429, words, {"retry-after": number})
        blocks.append({"type": "text", "text": rest} if kind == "say" else {"type": "thinking", "thinking": rest})
    return blocks


class Api(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer(200, b"")

    do_GET = do_HEAD

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        path = self.path.split("?")[0]
        with self.server.lock:
            self.server.seen += 1
            number = self.server.seen
        if path == "/v1/messages/count_tokens":
            return self.answer(200, json.dumps({"input_tokens": 7}).encode())
        if path != "/v1/messages":
            return self.answer(404, b"{}")
        # A small question of the program's own, such as for a title.
        answer = plan(body["messages"]) if body.get("tools") or "stream" in body else [{"type": "text", "text": "{}"}]
        if isinstance(answer, tuple):
            return self.fail(*answer)
        blocks = [block | ({"id": f"toolu_{number}"} if block["type"] == "tool_use" else {}) for block in answer]
        stop = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
        message = {
            "id": f"msg_{number}", "type": "message", "role": "assistant", "model": body["model"], "content": [],
            "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 11, "output_tokens": 1},
        }
        if not body.get("stream"):
            return self.answer(200, json.dumps(message | {"content": blocks, "stop_reason": stop}).encode())
        self.stream(message, blocks, stop)

    def stream(self, message, blocks, stop):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.event("message_start", message=message)
        for index, block in enumerate(blocks):
            kind = block["type"]
            empty = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}, "tool_use": {"input": {}}}[kind]
            self.event("content_block_start", index=index, content_block=block | empty)
            for delta in deltas(block):
                self.event("content_block_delta", index=index, delta=delta)
            self.event("content_block_stop", index=index)
        usage = {"output_tokens": 5}
        self.event("message_delta", delta={"stop_reason": stop, "stop_sequence": None}, usage=usage)
        self.event("message_stop")
        self.close_connection = True

    def event(self, kind, **members):
        self.wfile.write(f"event: {kind}\ndata: {json.dumps({'type': kind} | members)}\n\n".encode())
        self.wfile.flush()

    def fail(self, status, words, headers):
        error = {"type": "error", "error": {"type": KINDS.get(status, "api_error"), "message": words}}
        self.answer(status, json.dumps(error).encode(), headers)

    def answer(self, status, body, headers=()):
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def deltas(block):
    """A block in pieces, as it arrives."""
    if block["type"] == "tool_use":
        text = json.dumps(block["input"])
        half = len(text) // 2
        return [{"type": "input_json_delta", "partial_json": part} for part in (text[:half], text[half:])]
    if block["type"] == "thinking":
        return [
            {"type": "thinking_delta", "thinking": block["thinking"]},
            {"type": "signature_delta", "signature": "c2lnbmVk"},
        ]
    words = re.findall(r"\S+\s*|\s+", block["text"])
    return [{"type": "text_delta", "text": word} for word in words]


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    server.daemon_threads = True
    server.lock, server.seen = threading.Lock(), 0
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
