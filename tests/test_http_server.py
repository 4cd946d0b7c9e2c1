"""Files on an HTTP server that is silent, refuses, fails or denies: one sentence that says which, and no long wait."""

import http.server
import os
import socket
import threading
import time

import numpy as np
import pytest

from naysay import cli, places

pytest.importorskip("aiohttp")


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers as the path says: /401/x.npy is denied, /body/x.npy stops after its headers."""

    def do_HEAD(self):
        self.answer()

    def do_GET(self):
        self.answer()

    def answer(self):
        kind = self.path.split("/")[1]
        self.send_response(int(kind) if kind.isdecimal() else 200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        if kind == "body":
            time.sleep(30)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    """The address of a server on this machine."""
    served = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.daemon_threads = True
    served.block_on_close = False
    thread = threading.Thread(target=served.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{served.server_port}"
    served.shutdown()
    served.server_close()


@pytest.fixture
def error_of(tmp_path, monkeypatch, capsys):
    """Run a command that fails; return its sentence."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        with pytest.raises(SystemExit) as ended:
            cli.main(list(words))
        *progress, sentence = capsys.readouterr().err.splitlines()
        assert ended.value.code == 2
        assert not any(line.startswith(("naysay:", "Traceback")) for line in progress)
        assert sentence.startswith(f"naysay: {words[0]}: ")
        return sentence

    return run


def test_the_error_says_what_the_server_answered(server, error_of):
    sentences = {kind: error_of("thresholds", f"{server}/{kind}/x.npy") for kind in ("401", "404", "500", "503")}
    for kind, sentence in sentences.items():
        assert ("is not there" in sentence) == (kind == "404")
        assert ("denies access" in sentence) == (kind == "401")
        assert "`scores`" in sentence
    assert "500" in sentences["500"].replace(server, "").replace("/500/", "")
    assert "503" in sentences["503"].replace(server, "").replace("/503/", "")


def test_a_refused_connection_is_called_so(error_of):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    sentence = error_of("thresholds", f"http://127.0.0.1:{port}/x.npy")
    assert "refuses the connection" in sentence
    assert "not there" not in sentence


def test_a_silent_server_is_given_up(error_of, monkeypatch):
    monkeypatch.setattr(places, "_SILENCE", 1.0)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        sentence = error_of("thresholds", f"http://127.0.0.1:{silent.getsockname()[1]}/x.npy")
    assert "has not answered" in sentence


def test_a_server_that_stops_in_the_middle_is_given_up(server, error_of, monkeypatch):
    monkeypatch.setattr(places, "_SILENCE", 1.0)
    assert "has not answered" in error_of("thresholds", f"{server}/body/x.npy")


def test_an_output_that_cannot_be_written_is_known_before_any_work(server, error_of):
    np.save("scores.npy", np.random.default_rng(0).normal(size=(20, 5)))
    assert "`--json`" in error_of("thresholds", "scores.npy", "--json", f"{server}/200/x.json")
    # The inputs of these do not exist, which would be the error if they were read first.
    mine = ["mine", "none.csv", "--corpus", "none.jsonl", "--query-vectors", "q.npy", "--corpus-vectors", "c.npy"]
    assert "`--output`" in error_of(*mine, "-k", "1", "-o", f"{server}/200/out.jsonl")
    assert "`--report`" in error_of(*mine, "-k", "1", "-o", "out.jsonl", "--report", f"{server}/200/out.html")
    assert "`--report`" in error_of("audit", "none.jsonl", "--report", f"{server}/200/out.html")
    assert os.listdir() == ["scores.npy"]


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("scores", ["thresholds", "file:///x%00.npy"]),
        ("--json", ["thresholds", "x.npy", "--json", "file:///x%00.json"]),
        ("negatives", ["audit", "file:///x%00.jsonl"]),
        ("--output", ["mine", "a.csv", "--corpus", "b.jsonl", "-k", "1", "-o", "file:///x%00.jsonl"]),
        ("pairs", ["mine", "file:///x%00.csv", "--corpus", "b.jsonl", "-k", "1", "-o", "out.jsonl"]),
    ],
)
def test_a_url_with_a_null_byte_is_one_sentence(option, words, error_of):
    assert f"`{option}`" in error_of(*words)
