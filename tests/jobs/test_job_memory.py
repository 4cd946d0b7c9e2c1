"""The budget of a job that fits a posterior, measured as resident memory of a child."""

import json
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ANCHORS, DOCUMENTS, WIDTH = 2050, 4000, 32
# Everything that a job loads is loaded before the measurement: the budget is above what the program takes for itself.
CHILD = """
import json, sys
from pathlib import Path

import pyarrow.csv, torch
from naysay.jobs.command import mine_files

def memory(entry):
    return 1024 * int(next(line for line in open("/proc/self/status") if line.startswith(entry)).split()[1])

def files(name):
    parts = ("pairs", "corpus", "query_vectors", "corpus_vectors")
    return {part: Path(f"{name} {part}." + ("npy" if "vectors" in part else "parquet")) for part in parts}

mine_files(**files("small"), output=Path("small.jsonl"), k="10")
Path("/proc/self/clear_refs").write_text("5")
before = memory("VmRSS")
found = mine_files(**files("large"), output=Path("large.jsonl"), k="10", budget=sys.argv[1])
print(json.dumps({"bytes": memory("VmHWM") - before, "rule": found.rule}))
"""


def write_world(folder, name, anchors, documents):
    """Families of four documents; an anchor is near their centre, and one of them is its only label."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(documents // 4, WIDTH))
    corpus = np.repeat(centres, 4, axis=0) + 0.5 * rng.normal(size=(documents, WIDTH))
    own = rng.permutation(documents)[:anchors]
    queries = centres[own // 4] + 0.3 * rng.normal(size=(anchors, WIDTH))
    for part, vectors in (("query", queries), ("corpus", corpus)):
        np.save(folder / f"{name} {part}_vectors.npy", vectors.astype(np.float32))
    pairs = {"anchor": [f"q{row}" for row in range(anchors)], "positive": [f"d{row}" for row in own]}
    pq.write_table(pa.table(pairs), folder / f"{name} pairs.parquet")
    texts = {"id": [f"d{row}" for row in range(documents)], "text": ["some words"] * documents}
    pq.write_table(pa.table(texts), folder / f"{name} corpus.parquet")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_fit_stays_within_the_budget(tmp_path):
    write_world(tmp_path, "small", 200, 2000)
    write_world(tmp_path, "large", ANCHORS, DOCUMENTS)
    command = [sys.executable, "-c", CHILD, "180MB"]
    threads = os.environ | {"NAYSAY_THREADS": "2"}  # each has memory of its own, so on any machine as many
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=threads)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["rule"].startswith("By labels alone")
    assert found["bytes"] < 180_000_000
