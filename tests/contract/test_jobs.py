"""naysay mine: the same bytes as in memory, for any budget and threads, after kills, and with a review in between."""

import json
import signal
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest

import naysay as ns
from tests.contract.command import ENVIRONMENT, run
from tests.contract.mined_world import Families

WORLD = Families(n=300, others=600)
DEEP = ["-k", "8", "--depth", "600", "--select", "softmax", "--temperature", "0.1"]

# Runs the command line of its arguments, and kills itself when it is about to finish its n-th file.
KILLED = """
import os, signal, sys
count, rename = int(sys.argv[1]), os.replace
def replace(*places, **options):
    global count
    count -= 1
    if count == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return rename(*places, **options)
os.replace = replace
from naysay.cli import main
main(sys.argv[2:])
"""
COUNTED = """
import os, sys
rename, seen = os.replace, []
def replace(*places, **options):
    seen.append(places)
    return rename(*places, **options)
os.replace = replace
from naysay.cli import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    assert not end.code
print("files:", len(seen))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("job")


@pytest.fixture(scope="module")
def files(folder):
    return WORLD.write(folder)


def alone(folder, program, *words):
    command = [sys.executable, "-c", program, *map(str, words)]
    return subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False)


def hidden(folder):
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


def test_a_killed_job_gives_the_same_bytes(folder, files):
    """Killed three times at different places, each time resumed; the output appears at the end alone."""
    job = ["mine", *files, *DEEP, "--budget", "160MB", "-o"]
    counted = alone(folder, COUNTED, *job, "whole.parquet")
    assert counted.returncode == 0, counted.stderr
    total = int(counted.stdout.rsplit("files:", 1)[1])
    assert total >= 3  # the job writes what it has done so far
    for place in (2, max(2, total // 2), 2):
        stopped = alone(folder, KILLED, place, *job, "out.parquet", "--resume")
        assert stopped.returncode == -signal.SIGKILL, stopped.stderr
        assert not (folder / "out.parquet").exists()
    last = run(*job, "out.parquet", "--resume", folder=folder)
    assert last.code == 0, last.err
    assert (folder / "out.parquet").read_bytes() == (folder / "whole.parquet").read_bytes()
    assert hidden(folder) == []


def test_a_job_writes_what_mine_gives_in_memory(folder, files):
    done = run("mine", *files, "-k", 5, "--format", "ids", "--with-scores", "-o", "ids.jsonl", folder=folder)
    assert done.code == 0, done.err
    mined = ns.mine(WORLD.queries, WORLD.corpus, WORLD.labelled, 5)
    rows = [json.loads(line) for line in (folder / "ids.jsonl").read_text().splitlines()]
    assert [row["anchor"] for row in rows] == [f"question {row}" for row in range(WORLD.n)]
    assert [[int(name[1:]) for name in row["negatives"]] for row in rows] == mined.ids.tolist()
    found = np.array([row["negative_scores"] for row in rows], np.float32)
    assert found.tobytes() == mined.scores.tobytes()
    assert mined.rule.partition("A review would settle it")[0] in done.out  # then the command, or the function


def test_the_same_bytes_for_any_budget_and_number_of_threads(folder, files):
    found = set()
    for options in ((), ("--budget", "160MB", "--threads", "2"), ("--threads", "4", "--budget", "1GB")):
        done = run("mine", *files, "-k", 6, "-o", "any.parquet", *options, folder=folder)
        assert done.code == 0, done.err
        found.add((folder / "any.parquet").read_bytes())
    assert len(found) == 1


def test_an_unfinished_job_is_neither_continued_nor_lost_in_silence(folder, files):
    job = ["mine", *files, *DEEP, "--budget", "160MB", "-o", "left.parquet"]
    assert alone(folder, KILLED, 2, *job).returncode == -signal.SIGKILL
    asked = run(*job, folder=folder)
    assert asked.code == 2
    assert not (folder / "left.parquet").exists()
    assert run(*job, "--fresh", folder=folder).code == 0
    assert pq.read_table(folder / "left.parquet").num_rows == 8 * WORLD.n
    assert hidden(folder) == []


def test_a_review_corrects_the_estimate(folder, files):
    first = run(
        "mine", *files, "-k", 5, "--review", 40, "--review-file", "review.jsonl", "-o", "a.jsonl", folder=folder
    )
    assert first.code == 0, first.err
    pairs = [json.loads(line) for line in (folder / "review.jsonl").read_text().splitlines()]
    assert len(pairs) == 40
    (empty,) = [name for name, value in pairs[0].items() if value in ("", None)]
    lines = []
    for pair in pairs:
        anchor = next(int(value.removeprefix("question ")) for value in pair.values() if "question " in str(value))
        item = next(int(value[1:]) for value in pair.values() if str(value)[:1] == "d" and str(value)[1:].isdecimal())
        truth = bool(WORLD.is_false(np.where(np.arange(WORLD.n)[:, None] == anchor, item, -1))[anchor, 0])
        lines.append(json.dumps({**pair, empty: "yes" if truth else "no"}))
    (folder / "review.jsonl").write_text("\n".join(lines) + "\n")
    second = run("mine", *files, "-k", 5, "--reviewed", "review.jsonl", "-o", "b.jsonl", folder=folder)
    assert second.code == 0, second.err


def test_ignored_pairs_and_a_report(folder, files):
    nearest = ns.mine(WORLD.queries, WORLD.corpus, WORLD.labelled, 1, judge=None).ids[:, 0]
    lines = ["anchor,positive", *(f"question {row},d{item}" for row, item in enumerate(nearest.tolist()))]
    (folder / "ignore.csv").write_text("\n".join(lines) + "\n")
    options = ("--ignore", "ignore.csv", "--judge", "none", "--format", "ids", "--report", "mined.html")
    done = run("mine", *files, "-k", 3, *options, "-o", "c.jsonl", folder=folder)
    assert done.code == 0, done.err
    rows = [json.loads(line) for line in (folder / "c.jsonl").read_text().splitlines()]
    assert all(f"d{item}" not in row["negatives"] for row, item in zip(rows, nearest.tolist(), strict=True))
    assert "<html" in (folder / "mined.html").read_text()[:200].lower()


def test_texts_alone_are_mined_by_bm25_and_a_model(folder, tmp_path):
    """A model is a folder or a name; without one, vectors are needed."""
    (tmp_path / "pairs.csv").write_text("anchor,positive\nred fox,the red fox runs\n")
    done = run("mine", "pairs.csv", "-o", "out.jsonl", folder=tmp_path)
    assert done.code == 2
    assert not (tmp_path / "out.jsonl").exists()
