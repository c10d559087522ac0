"""A receiver of webhooks that keeps what it is sent, as a client of the SDK would run one."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Receiver:
    def __init__(self):
        self.received = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.received.append(({name.lower(): value for name, value in self.headers.items()}, body))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def wait(self, count, seconds=10):
        deadline = time.monotonic() + seconds
        while len(self.received) < count:
            assert time.monotonic() < deadline, f"only {len(self.received)} of {count} webhooks came"
            time.sleep(0.01)
        return self.received

    def until(self, enough, seconds=10):
        """The bodies so far, once there is one that is enough."""
        deadline = time.monotonic() + seconds
        while not any(enough(body) for _, body in list(self.received)):
            assert time.monotonic() < deadline, f"none of {len(self.received)} webhooks was the one waited for"
            time.sleep(0.01)
        return [body for _, body in list(self.received)]

    def told(self):
        """The states of the tasks and updates that came, and "artifact" for each artifact."""
        said = []
        for _, body in self.received:
            [(kind, value)] = json.loads(body).items()
            said.append(value["status"]["state"] if "status" in value else kind)
        return said

    def close(self):
        self.server.shutdown()
        self.server.server_close()
