"""A chat server on this machine that grades pairs, and fails as it is told; it counts what it was asked."""

import http.server
import json
import re
import socket
import threading
import time
from collections import Counter
from contextlib import contextmanager

MODEL = "grader"


class Grader:
    """What the server does.

    grades    {document: grade or any text to reply with}, or a function of the prompt
    plan      {document: kinds of failure, one for each of the first requests about it}: a status, "garbage", "stall",
              "dies" or "refused"
    key       the key that it accepts; None: any
    """

    def __init__(self, grades, plan=None, key=None, wait=0.0):
        self.grades, self.plan, self.key, self.wait = grades, plan or {}, key, wait
        self.asked, self.answered = Counter(), Counter()  # requests by document, and those that were paid for
        self.busy, self.busiest = 0, 0
        self.lock = threading.Lock()


def handler_of(grader):
    class Handler(http.server.BaseHTTPRequestHandler):
        def reply(self, status, body, **headers):
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(data)

        def refused(self):
            """A hostile server repeats the key in its error."""
            sent = self.headers["Authorization"]
            if grader.key is not None and sent != f"Bearer {grader.key}":
                self.reply(401, {"error": {"message": f"Incorrect API key provided: {sent}"}})
                return True
            return False

        def do_GET(self):
            if not self.refused():
                self.reply(200, {"object": "list", "data": [{"id": MODEL, "object": "model"}]})

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.refused():
                return
            if body["model"] != MODEL:
                self.reply(404, {"error": {"message": "no such model"}})
                return
            text = body["messages"][0]["content"]
            document = re.search(r"document \d+", text).group()
            with grader.lock:
                failures = grader.plan.get(document, [])
                failure = failures[grader.asked[document]] if grader.asked[document] < len(failures) else None
                grader.asked[document] += 1
                grader.busy += 1
                grader.busiest = max(grader.busiest, grader.busy)
            time.sleep(grader.wait)
            with grader.lock:
                grader.busy -= 1
            if failure == "stall":
                time.sleep(1.0)
                self.close_connection = True
                return
            if failure == "dies":
                self.send_response(200)
                self.send_header("Content-Length", "1000")
                self.end_headers()
                self.wfile.write(b'{"choices": [')
                self.wfile.flush()
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
                return
            if isinstance(failure, int):
                self.reply(failure, {"error": {"message": self.headers["Authorization"]}}, Retry_After="0")
                return
            with grader.lock:
                grader.answered[document] += 1
            if failure == "garbage":
                self.reply(200, b"<html>not JSON</html>")
                return
            usage = {"prompt_tokens": len(text) // 4, "completion_tokens": 1, "total_tokens": len(text) // 4 + 1}
            grade = grader.grades(text) if callable(grader.grades) else grader.grades[document]
            message = {"role": "assistant", "content": str(grade)}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            made = {"id": "1", "object": "chat.completion", "created": 0, "model": MODEL}
            self.reply(200, {**made, "choices": [choice], "usage": usage})

        def log_message(self, *_):
            pass

    return Handler


@contextmanager
def serving(grader):
    """The URL of a server while it runs."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler_of(grader))
    server.daemon_threads = True
    server.block_on_close = False
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
