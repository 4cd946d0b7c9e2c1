"""naysay mine: the real command, killed and resumed, stopped, given wrong options; never a traceback."""

import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import naysay as ns

COMMAND = [sys.executable, "-W", "error", "-m", "naysay.cli", "mine"]
FILES = ["pairs.parquet", "--corpus", "docs.parquet", "--query-vectors", "q.npy", "--corpus-vectors", "c.npy"]


DEEP = ["-k", "8", "--depth", "800", "--budget", "160MB", "--select", "softmax", "--temperature", "0.1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A world whose job takes four parts in the smallest budget, because it is searched deep."""
    made = tmp_path_factory.mktemp("mine")
    world = ns.planted_world(900, 900, per_anchor=6, noise=0.2, seed=0)
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


def run(folder, *arguments, **given):
    environment = os.environ | {"OMP_NUM_THREADS": "1", "NAYSAY_THREADS": "1"}
    return subprocess.run([*COMMAND, *arguments], cwd=folder, env=environment, capture_output=True, text=True, **given)


def stop(folder, name, parts, sign, *options):
    """Run the job until it has so many finished parts (none: until it has a folder), and send it a signal."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "NAYSAY_THREADS": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [*COMMAND, *FILES, *DEEP, "-o", name, *options]
    job = folder / f".{name}.naysay-job"
    with subprocess.Popen(command, cwd=folder, env=environment, text=True, **pipes) as process:
        while process.poll() is None and not (len(list(job.glob("part-*"))) >= parts and (job / "job.json").exists()):
            pass
        process.send_signal(sign)
        out, errors = process.communicate()
    return process.returncode, out, errors


def test_the_same_bytes_after_kills(folder, whole):
    job, output, parts = folder / ".out.parquet.naysay-job", folder / "out.parquet", []
    for wanted in (0, 1, 2, 3):
        code, _, errors = stop(folder, "out.parquet", wanted, signal.SIGKILL, "--resume")
        assert code == -signal.SIGKILL, errors
        parts.append(len(list(job.glob("part-*"))))
        assert not output.exists() or output.read_bytes() == whole[1]
    assert parts == sorted(parts)
    assert parts[0] < parts[-1]  # killed with few and with many of the parts done
    last = run(folder, *FILES, *DEEP, "-o", "out.parquet", "--resume")
    assert last.returncode == 0, last.stderr
    assert (last.stdout.replace("out.parquet", "OUTPUT"), output.read_bytes()) == whole
    assert not [file.name for file in folder.iterdir() if file.name.startswith(".")]


def test_a_line_of_numbers_and_one_of_advice(folder):
    done = run(folder, *FILES, "-k", "4", "-o", "out.jsonl")
    assert done.returncode == 0
    numbers, advice = done.stdout.splitlines()
    assert numbers.startswith("out.jsonl: 900 anchors, 3,600 negatives, false negatives ")
    assert re.search(r"% \(at most [\d.]+ % at 95% confidence\), hardness 0\.9\d\d, no anchor short$", numbers)
    assert advice.startswith("Next: ")
    assert done.stderr.count("\n") == 1  # the rule; no progress where nobody is at a terminal
    rows = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]
    assert list(rows[0]) == ["anchor", "positive", "negative"]
    assert rows[0]["anchor"] == "question 0"
    assert rows[0]["negative"].startswith("text ")


def test_ctrl_c_leaves_a_job_that_can_be_resumed(folder, whole):
    stopped = stop(folder, "stopped.parquet", 1, signal.SIGINT)
    assert stopped == (130, "", "naysay: mine: stopped; run again with --resume\n")
    assert not (folder / "stopped.parquet").exists()
    again = run(folder, *FILES, *DEEP, "-o", "stopped.parquet")
    assert again.returncode == 2
    assert again.stderr == (
        "naysay: mine: `--output` must be one without an unfinished job, got the job in "
        "'.stopped.parquet.naysay-job'. Continue it with --resume, or start again with --fresh.\n"
    )
    assert run(folder, *FILES, *DEEP, "-o", "stopped.parquet", "--resume").returncode == 0
    assert (folder / "stopped.parquet").read_bytes() == whole[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-k", "few", "-o", "x.parquet"], "`-k` must be a whole number, or auto, got 'few'."),
        (["-o", "x.parquet", "--budget", "much"], "`--budget` must be a size such as 2GB or 500MB, got 'much'."),
        (
            ["-o", "x.parquet", "--judge", "margn:0.1"],
            "`--judge` must be one of 'auto', 'none', 'calibrated', 'margin', 'share', 'absolute', 'bands', "
            "got 'margn'. Did you mean 'margin'?",
        ),
        (
            ["-o", "x.txt"],
            "`--output` must be a file that ends in .parquet or .jsonl or .hf for the format 'triplet', got 'x.txt'.",
        ),
    ],
)
def test_an_invalid_option_is_one_sentence(folder, arguments, message):
    done = run(folder, *FILES, *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == f"naysay: mine: {message}\n"
    assert not [file for file in folder.iterdir() if file.name.startswith(".x.")]


def test_nothing_is_written_over_what_is_read(folder):
    before = (folder / "docs.parquet").read_bytes()
    for arguments, sentence in (
        (["-o", "docs.parquet"], "naysay: mine: `--output` must be another file than --corpus, got 'docs.parquet'.\n"),
        (["-o", "a.parquet", "--report", "docs.parquet"], "naysay: mine: `--report` must be a file that ends in .html"),
        (["-o", "a.parquet", "--report", "a.txt"], "naysay: mine: `--report` must be a file that ends in .html"),
    ):
        done = run(folder, *FILES, *arguments)
        assert done.returncode == 2
        assert sentence in done.stderr
        assert not (folder / "a.parquet").exists()
    assert (folder / "docs.parquet").read_bytes() == before
