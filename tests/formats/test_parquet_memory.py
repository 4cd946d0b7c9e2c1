"""Parquet of one large row group: `naysay mine` stays within its budget, measured as memory of a child.

Pages of mapped files do not count: the system takes them back when it needs them.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from naysay.errors import NaysayError
from naysay.tables import check_memory

BUDGET = 180_000_000
PLAIN = {"use_dictionary": False, "compression": "none"}  # random values do not compress
# Everything that a job loads is loaded before the measurement: the budget is above what the program takes for itself.
CHILD = """
import json, sys, threading
from pathlib import Path

import pyarrow.csv, torch
from naysay.jobs.command import mine_files

def memory():
    return 1024 * int(next(line for line in open("/proc/self/status") if line.startswith("RssAnon")).split()[1])

def watch():
    while not done.wait(0.002):
        peak[0] = max(peak[0], memory())

given = {name: Path(path) for name, path in json.loads(sys.argv[1]).items()}
small = {**given, "corpus": Path("small.parquet"), "corpus_vectors": Path("small.npy")}
mine_files(**small, k="2", judge="none")
before, peak, done = memory(), [0], threading.Event()
watching = threading.Thread(target=watch, daemon=True)
watching.start()
mine_files(**given, k="2", judge="none", budget="180MB")
done.set()
watching.join()
print(peak[0] - before)
"""


def write_documents(path, n, size):
    """Documents d0, d1, ... whose texts have `size` random letters, in one row group."""
    letters = np.random.default_rng(0).integers(97, 123, n * size, np.uint8)
    ends = pa.py_buffer(np.arange(n + 1, dtype=np.int64) * size)
    texts = pa.LargeStringArray.from_buffers(n, ends, pa.py_buffer(letters))
    pq.write_table(pa.table({"id": [f"d{row}" for row in range(n)], "text": texts}), path, row_group_size=n, **PLAIN)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_budget_holds_for_one_large_row_group(tmp_path):
    """Of texts and of vectors, each larger than the budget."""
    n, width, size = 45_000, 1024, 4096
    rng = np.random.default_rng(0)
    write_documents(tmp_path / "docs.parquet", n, size)
    write_documents(tmp_path / "small.parquet", 200, 10)
    vectors = rng.random((n, width), np.float32)
    np.save(tmp_path / "small.npy", vectors[:200])
    np.save(tmp_path / "q.npy", rng.random((4, width), np.float32))
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), width)
    pq.write_table(pa.table({"vector": column}), tmp_path / "c.parquet", row_group_size=n, **PLAIN)
    (tmp_path / "pairs.csv").write_text("anchor,positive\n" + "".join(f"q{row},d{row}\n" for row in range(4)))
    files = {"pairs": "pairs.csv", "corpus": "docs.parquet", "query_vectors": "q.npy", "corpus_vectors": "c.parquet"}
    command = [sys.executable, "-c", CHILD, json.dumps(files | {"output": "out.jsonl"})]
    threads = os.environ | {"NAYSAY_THREADS": "2"}  # each has memory of its own, so on any machine as many
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=threads)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.splitlines()[-1]) < BUDGET


def test_a_page_that_is_too_large_is_found_before_the_work(tmp_path):
    """1,024 texts of 10 kB are one page, unless the writer is told otherwise."""
    table = pa.table({"id": [f"d{row}" for row in range(2048)], "text": ["x" * 10_000] * 2048})
    pq.write_table(table, tmp_path / "large.parquet", **PLAIN)
    pq.write_table(table, tmp_path / "small.parquet", write_batch_size=16, data_page_size=10_000, **PLAIN)
    check_memory("--corpus", tmp_path / "large.parquet", 20_000_000)
    check_memory("--corpus", tmp_path / "small.parquet", 10_000_000)
    message = r"`--corpus` must be a file whose pages take at most 10MB, got 1\dMB for a page of .*larger --budget"
    with pytest.raises(NaysayError, match=message):
        check_memory("--corpus", tmp_path / "large.parquet", 10_000_000)
    check_memory("--corpus", tmp_path / "none.parquet", 1)
    check_memory("--corpus", tmp_path / "lines.jsonl", 1)
