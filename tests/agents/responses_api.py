"""A loopback stand-in for the Responses API, in its real format, that says what its prompt tells it to.

    python3 responses_api.py

prints its URL, and ends with its standard input. What it answers is in the last message of the user; each line of it
that is a directive becomes an item of the answer:

    say TEXT            a text, in pieces
    think TEXT          a summary of reasoning
    use NAME JSON       a use of a tool; its result is answered with "NAME said: RESULT", then the lines after it
    fail STATUS TEXT    an error instead of an answer

A message without a directive is answered with how long it is and how it begins.
"""

import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DIRECTIVE = re.compile(r"^(say|think|use|fail) (.*)$", re.MULTILINE)


def words(item):
    content = item.get("content") or []
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def asked(items):
    """The last thing the user said, what the last tool said, and how many tools have answered since."""
    said, count = None, 0
    for item in reversed(items):
        if item.get("type") in ("function_call_output", "custom_tool_call_output"):
            output = item.get("output")
            said = said if said is not None else (output if isinstance(output, str) else json.dumps(output))
            count += 1
        elif item.get("role") == "user":
            return words(item), said, count
    return "", said, count


def plan(items):
    text, tool_said, done = asked(items)
    lines = DIRECTIVE.findall(text)
    if not lines:
        shown = tool_said if tool_said is not None else text
        return [{"say": f"{len(shown)} characters: {shown[:40]}"}]
    answer = []
    for kind, rest in lines:
        if kind == "use":
            name, _, given = rest.partition(" ")
            if done > 0:
                done -= 1
                answer = [{"say": f"{name} said: {tool_said}"}] if done == 0 else []
                continue
            answer.append({"use": name, "with": given or "{}"})
            return answer
        if kind == "fail":
            status, _, rest = rest.partition(" ")
            return int(status), rest
        answer.append({kind: rest})
    return answer


class Api(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer(200, json.dumps({"object": "list", "data": [], "models": []}).encode())

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        with self.server.lock:
            self.server.seen += 1
            number = self.server.seen
        if not self.path.split("?")[0].endswith("/responses"):
            return self.answer(404, b"{}")
        if "--show" in sys.argv:
            print(json.dumps(body), file=sys.stderr, flush=True)
        items = body.get("input") or []
        planned = plan(items if isinstance(items, list) else [{"role": "user", "content": items}])
        if isinstance(planned, tuple):
            error = {"error": {"message": planned[1], "type": "invalid_request_error", "code": "stub"}}
            return self.answer(planned[0], json.dumps(error).encode())
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for event in events(planned, number, body.get("model", "stub")):
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
            self.wfile.flush()

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def events(planned, number, model):
    response = {"id": f"resp_{number}", "object": "response", "model": model, "status": "in_progress", "output": []}
    yield {"type": "response.created", "response": response}
    output = []
    for index, part in enumerate(planned):
        if "say" in part:
            item = {"id": f"msg_{number}_{index}", "type": "message", "role": "assistant", "content": []}
            yield {"type": "response.output_item.added", "output_index": index, "item": item}
            for piece in re.findall(r"\S+\s*", part["say"]):
                yield {"type": "response.output_text.delta", "item_id": item["id"], "output_index": index,
                       "content_index": 0, "delta": piece}
            item = {**item, "content": [{"type": "output_text", "text": part["say"], "annotations": []}]}
        elif "think" in part:
            item = {"id": f"rs_{number}_{index}", "type": "reasoning",
                    "summary": [{"type": "summary_text", "text": part["think"]}]}
        else:
            item = {"id": f"fc_{number}_{index}", "type": "function_call", "call_id": f"call_{number}_{index}",
                    "name": part["use"], "arguments": part["with"]}
        output.append(item)
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    usage = {"input_tokens": 11, "input_tokens_details": {"cached_tokens": 3}, "output_tokens": 5,
             "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 16}
    yield {"type": "response.completed", "response": {**response, "status": "completed", "output": output, "usage": usage}}


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    server.lock, server.seen, server.daemon_threads = threading.Lock(), 0, True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
