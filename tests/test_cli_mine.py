"""naysay mine: the real command, killed and resumed, stopped, given wrong options; never a traceback."""

import io
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import naysay as ns
from naysay.cli import main

COMMAND = [sys.executable, "-W", "error", "-m", "naysay.cli", "mine"]
FILES = ["pairs.parquet", "--corpus", "docs.parquet", "--query-vectors", "q.npy", "--corpus-vectors", "c.npy"]


SERIAL = {"OMP_NUM_THREADS": "1", "NAYSAY_THREADS": "1"}
DEEP = ["-k", "8", "--depth", "800", "--budget", "160MB", "--select", "softmax", "--temperature", "0.1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A world whose job takes three parts in the smallest budget, because it is searched deep."""
    made = tmp_path_factory.mktemp("mine")
    world = ns.planted_world(500, 900, per_anchor=6, noise=0.2, seed=0)
    np.save(made / "q.npy", world.anchor_vectors)
    np.save(made / "c.npy", world.item_vectors)
    anchors, items = world.known.pairs()
    pairs = {"anchor": [f"question {row}" for row in anchors], "positive": [f"d{row}" for row in items]}
    pq.write_table(pa.table(pairs), made / "pairs.parquet")
    documents = {"id": [f"d{row}" for row in range(900)], "text": [f"text {row}" for row in range(900)]}
    pq.write_table(pa.table(documents), made / "docs.parquet")
    return made


@pytest.fixture(scope="module")
def whole(folder):
    """What the job prints and writes if nothing stops it."""
    done = run(folder, *FILES, *DEEP, "-o", "whole.parquet")
    assert done.returncode == 0, done.stderr
    return done.stdout.replace("whole.parquet", "OUTPUT"), (folder / "whole.parquet").read_bytes()


def run(folder, *arguments):
    """The command in this process: its exit code, and what it prints."""
    out, errors, code = io.StringIO(), io.StringIO(), 0
    with chdir(folder), redirect_stdout(out), redirect_stderr(errors):
        try:
            main(["mine", *arguments])
        except SystemExit as end:
            code = end.code
    return SimpleNamespace(returncode=code, stdout=out.getvalue(), stderr=errors.getvalue())


STOP = """
import os, signal, sys
name, count, sign, *arguments = sys.argv[1:]
own, left = os.replace, int(count)
def replace(draft, target):
    global left
    left -= os.path.basename(target).startswith(name)
    if left == 0:
        os.kill(os.getpid(), int(sign))
    return own(draft, target)
os.replace, sys.argv = replace, ["naysay", "mine", *arguments]
from naysay.cli import main
main()
"""


def stop(folder, output, name, count, sign, *options):
    """Run the job, and send it a signal when it is about to finish a file of this name for the count-th time."""
    command = [sys.executable, "-c", STOP, name, str(count), str(int(sign)), *FILES, *DEEP, "-o", output, *options]
    return subprocess.run(command, cwd=folder, env=os.environ | SERIAL, capture_output=True, text=True)


def test_a_line_of_numbers_one_of_advice_and_the_rule(folder):
    done = run(folder, *FILES, "-k", "4", "-o", "out.jsonl")
    assert done.returncode == 0
    numbers, advice, rule = done.stdout.splitlines()
    assert numbers.startswith("out.jsonl: 500 anchors, k = 4, 2,000 negatives, false negatives ")
    assert re.search(r"(% \(95 % CI [\d.]+ to [\d.]+\)|unknown \(.*\)), hardness 0\.9\d\d, no anchor short$", numbers)
    assert advice.startswith("Next: ")
    assert rule.startswith("By labels alone")
    assert rule.endswith("naysay mine ... --reviewer KIND --review 100")
    assert done.stderr == ""  # no progress where nobody is at a terminal
    rows = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]
    assert list(rows[0]) == ["anchor", "positive", "negative"]
    assert rows[0]["anchor"] == "question 0"
    assert rows[0]["negative"].startswith("text ")


def test_ctrl_c_leaves_a_job_that_can_be_resumed(folder, whole):
    stopped = stop(folder, "stopped.parquet", "part-", 2, signal.SIGINT)
    assert (stopped.returncode, stopped.stdout) == (130, "")
    *progress, last = stopped.stderr.splitlines()  # a slow machine prints progress
    assert last == "naysay: mine: stopped. Run the same command with --resume to continue."
    assert not any(line.startswith(("naysay:", "Traceback")) for line in progress)
    assert not (folder / "stopped.parquet").exists()
    again = run(folder, *FILES, *DEEP, "-o", "stopped.parquet")
    assert again.returncode == 2
    assert again.stderr.count("\n") == 1
    assert all(word in again.stderr for word in ("'.stopped.parquet.naysay-job'", "--resume", "--fresh", " done"))
    assert run(folder, *FILES, *DEEP, "-o", "stopped.parquet", "--resume").returncode == 0
    assert (folder / "stopped.parquet").read_bytes() == whole[1]


def test_nothing_is_written_over_what_is_read(folder):
    before = (folder / "docs.parquet").read_bytes()
    for arguments, sentence in (
        (
            ["-o", "docs.parquet"],
            "naysay: mine: `--output` must be another file than `--corpus`, got 'docs.parquet'.\n",
        ),
        (["-o", "a.parquet", "--report", "docs.parquet"], "naysay: mine: `--report` must be a file that ends in .html"),
        (["-o", "a.parquet", "--report", "a.txt"], "naysay: mine: `--report` must be a file that ends in .html"),
    ):
        done = run(folder, *FILES, *arguments)
        assert done.returncode == 2
        assert sentence in done.stderr
        assert not (folder / "a.parquet").exists()
    assert (folder / "docs.parquet").read_bytes() == before


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal")
def test_progress_on_a_terminal(folder):
    ours, theirs = os.openpty()
    command = [*COMMAND, *FILES, "-k", "4", "-o", "shown.jsonl"]
    environment = os.environ | SERIAL | {"TERM": "xterm"}
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 1 << 16):
                shown += part
        except OSError:  # how Linux says that the other end is closed
            pass
    os.close(ours)
    assert process.returncode == 0
    assert b"reading" in shown
    assert b"writing" in shown
