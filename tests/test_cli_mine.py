"""naysay mine: the real command, killed and resumed, stopped, refused; never a traceback."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import naysay as ns

COMMAND = [sys.executable, "-W", "error", "-m", "naysay.cli", "mine"]
FILES = ["pairs.parquet", "--corpus", "docs.parquet", "--query-vectors", "q.npy", "--corpus-vectors", "c.npy"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A world whose job takes many parts in the least budget, because it is searched deep."""
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


def run(folder, *arguments, **given):
    environment = os.environ | {"OMP_NUM_THREADS": "1", "NAYSAY_THREADS": "1"}
    return subprocess.run(
        [*COMMAND, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=300, **given
    )


def start(folder, *arguments):
    environment = os.environ | {"OMP_NUM_THREADS": "1", "NAYSAY_THREADS": "1"}
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*COMMAND, *arguments], cwd=folder, env=environment, text=True, **output)


DEEP = ["-k", "8", "--depth", "800", "--budget", "160MB", "--select", "softmax", "--temperature", "0.1"]


def test_twenty_kills(folder):
    began = time.monotonic()
    whole = run(folder, *FILES, *DEEP, "-o", "whole.parquet")
    takes = time.monotonic() - began
    assert whole.returncode == 0, whole.stderr
    expected = (folder / "whole.parquet").read_bytes()
    chance, kills, done, parts = ns.rng_for(0), 0, 0, set()
    job = folder / ".out.parquet.naysay-job"
    while kills < 20:
        process = start(folder, *FILES, *DEEP, "-o", "out.parquet", "--resume")
        try:
            process.wait(chance.uniform(0.2, 0.8) * takes)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            kills += 1
            parts.add(len(list(job.glob("part-*"))) if job.is_dir() else -1)
        _, told = process.communicate()
        if process.returncode == 0:
            assert (folder / "out.parquet").read_bytes() == expected
            assert not job.exists()
            (folder / "out.parquet").unlink()
            done += 1
        else:
            assert process.returncode == -signal.SIGKILL, told
            assert not (folder / "out.parquet").exists() or (folder / "out.parquet").read_bytes() == expected
    last = run(folder, *FILES, *DEEP, "-o", "out.parquet", "--resume")
    assert last.returncode == 0, last.stderr
    assert (folder / "out.parquet").read_bytes() == expected
    assert last.stdout.replace("out.parquet", "whole.parquet") == whole.stdout
    assert len(parts) > 2  # it was killed with none, with some and with many of the parts done
    left = {file.name for file in folder.iterdir()}
    assert not [name for name in left if name.startswith(".")]


def test_one_line_of_numbers(folder):
    done = run(folder, *FILES, "-k", "4", "-o", "out.jsonl")
    assert done.returncode == 0
    assert done.stdout.count("\n") == 1
    assert done.stdout.startswith("900 anchors, 3,600 negatives, false negatives ")
    assert re.search(r"% \(0 to [\d.]+ % at 95%\), hardness 0\.9\d\d, no anchor short: out\.jsonl\n$", done.stdout)
    assert done.stderr.startswith("Threshold ")
    rows = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]
    assert list(rows[0]) == ["anchor", "positive", "negative"]
    assert rows[0]["anchor"] == "question 0"
    assert rows[0]["negative"].startswith("text ")


def test_ctrl_c_leaves_a_job_that_goes_on(folder):
    job = folder / ".stopped.parquet.naysay-job"
    process = start(folder, *FILES, *DEEP, "-o", "stopped.parquet")
    for _ in range(6000):
        if list(job.glob("part-*")) or process.poll() is not None:
            break
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, told = process.communicate(timeout=120)
    assert (process.returncode, out, told) == (130, "", "naysay: mine: stopped; run again with --resume\n")
    assert not (folder / "stopped.parquet").exists()
    again = run(folder, *FILES, *DEEP, "-o", "stopped.parquet")
    assert again.returncode == 2
    assert again.stderr == (
        "naysay: mine: `--output` must be one without an unfinished job, got the job in "
        "'.stopped.parquet.naysay-job'. Go on with it by --resume, or start anew with --fresh.\n"
    )
    assert run(folder, *FILES, *DEEP, "-o", "stopped.parquet", "--resume").returncode == 0
    assert run(folder, *FILES, *DEEP, "-o", "other.parquet").returncode == 0
    assert (folder / "stopped.parquet").read_bytes() == (folder / "other.parquet").read_bytes()


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
def test_refusals_are_one_sentence(folder, arguments, message):
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
