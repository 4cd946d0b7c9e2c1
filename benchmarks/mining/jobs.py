"""The memory of a mining job as the corpus grows, with a fixed budget: the command itself, over files on disk.

python -m benchmarks.mining.jobs [--documents 100000 1000000] [--queries 2000] [--budget 500MB] [--out FILE]

Random unit vectors, 384 wide, float16, in .npy files, texts in Parquet; a query is its positive with noise. `naysay
mine -k 8` runs in its own process. Memory is the peak resident size of the process minus that of a process that has
loaded the same libraries, including torch, and mined twenty anchors in 20,000 documents, both as the kernel reports.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.harness import write

WIDTH, BLOCK = 384, 1 << 14
LEAST = (20, 20_000)  # anchors and documents of the job that the others are compared with


def vectors(path: Path, rows: int, seed: int) -> None:
    """Random unit vectors in float16, a block at a time."""
    rng = np.random.default_rng(seed)
    mapped = np.lib.format.open_memmap(path, "w+", np.float16, (rows, WIDTH))
    for start in range(0, rows, BLOCK):
        block = rng.standard_normal((min(BLOCK, rows - start), WIDTH), np.float32)
        mapped[start : start + BLOCK] = block / np.linalg.norm(block, axis=1, keepdims=True)
    mapped.flush()


def files(folder: Path, queries: int, documents: int) -> None:
    """Pairs, documents and their vectors."""
    vectors(folder / "c.npy", documents, 2)
    rng = np.random.default_rng(3)
    positives = rng.integers(0, documents, queries)
    near = np.load(folder / "c.npy", mmap_mode="r")[positives] + rng.normal(0, WIDTH**-0.5, (queries, WIDTH))
    np.save(folder / "q.npy", near.astype(np.float16))
    pairs = {"anchor": [f"question {row}" for row in range(queries)], "positive": [f"d{row}" for row in positives]}
    pq.write_table(pa.table(pairs), folder / "pairs.parquet")
    with pq.ParquetWriter(folder / "docs.parquet", pa.schema([("id", pa.string()), ("text", pa.string())])) as file:
        for start in range(0, documents, BLOCK):
            rows = range(start, min(start + BLOCK, documents))
            block = {"id": [f"d{row}" for row in rows], "text": [f"document {row} of some length" for row in rows]}
            file.write_table(pa.table(block))


def mined(folder: Path, budget: str) -> dict[str, Any]:
    """Run the command; its seconds and its peak memory."""
    command = [sys.executable, "-m", "naysay.cli", "mine", "pairs.parquet", "--corpus", "docs.parquet"]
    command += ["--query-vectors", "q.npy", "--corpus-vectors", "c.npy", "-k", "8", "-o", "out.parquet"]
    start = time.perf_counter()
    process = subprocess.Popen(
        [*command, "--budget", budget], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    printed = process.stdout.read() if process.stdout else ""
    _, status, used = os.wait4(process.pid, 0)
    if status != 0:
        message = f"the job ended with {status}"
        raise SystemExit(message)
    return {
        "seconds": time.perf_counter() - start,
        "processor_seconds": used.ru_utime + used.ru_stime,
        "peak_bytes": used.ru_maxrss * 1024,
        "printed": printed.strip(),
    }


def main() -> None:
    """Measure each size and write results/jobs.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument("--budget", default="500MB")
    parser.add_argument("--folder", type=Path, help="where the files are written; some 800 bytes per document")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    rows = []
    for queries, documents in [LEAST, *((args.queries, documents) for documents in args.documents)]:
        with tempfile.TemporaryDirectory(dir=args.folder) as folder:
            # Elsewhere: a process begins with the highest size of the one that started it.
            maker = get_context("spawn").Process(target=files, args=(Path(folder), queries, documents))
            maker.start()
            maker.join()
            rows.append({"documents": documents, "queries": queries, **mined(Path(folder), args.budget)})
        rows[-1]["above_the_least_bytes"] = rows[-1]["peak_bytes"] - rows[0]["peak_bytes"]
        print(rows[-1], flush=True)
    write("jobs", {"width": WIDTH, "k": 8, "budget": args.budget, "load": os.getloadavg()[0], "rows": rows}, args.out)


if __name__ == "__main__":
    main()
