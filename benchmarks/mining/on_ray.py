"""Mining on Ray against the plain job: processor seconds by number of workers, and the driver's memory by documents.

python -m benchmarks.mining.on_ray [speed] [model] [memory] [--folder DIR] [--out FILE]

speed   1,000,000 documents x 384 and 5,000 queries in float16, k = 8. The plain job with two threads, and Ray with 1,
        2 and 4 workers of one thread on the same two cores, by turns. Processor seconds of the driver and of all
        workers after start-up: Ray and the workers run, and every process has loaded torch. `output` is a checksum.
model   the terms of the cost model, in processor seconds of one thread: a row read and rounded, a product, a pass over
        the norms and over the keys, a merge, and what the driver does for a query and for a byte.
memory  the peak of the driver above one with few documents, from 100,000 to 10,000,000 documents x 32, 1,000 queries.

Each run is added to the result file at once; what it holds is not run again.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import write
from benchmarks.mining import jobs

WORKERS, ROUNDS, SPEED = (0, 1, 2, 4), 3, (5000, 1_000_000, 384)  # 0 is the plain job
MEMORY, NARROW, FEW = (100_000, 1_000_000, 10_000_000), 32, 1000


def processor_seconds(pid: int) -> float:
    """Of another process, so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def job(folder: Path, workers: int, output: str) -> dict[str, Any]:
    """Run one job in this process; its seconds and processor seconds after start-up, by process."""
    from rich.console import Console

    from naysay.jobs import _pool, _prepare, _ray, _worker
    from naysay.jobs.command import mine_files

    importlib.import_module("torch")

    class Warm(_worker.ShardWorker):
        """A worker that loads torch when it starts."""

        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            importlib.import_module("torch")

    importlib.import_module("ray").cloudpickle.register_pickle_by_value(sys.modules[__name__])
    before: dict[int, float] = {}
    after: dict[int, float] = {}
    begun, waited = [time.perf_counter()], [0.0]

    def pids(pool: Any) -> list[int]:
        return [int(member.name.split()[1]) for member in pool._members if member is not None]

    def sharded(*given: Any) -> Any:
        own, start = time.process_time(), time.perf_counter()
        found = _ray.sharded(*given)
        before.update({pid: processor_seconds(pid) for pid in pids(found.pool)})
        waited[0], begun[0] = time.process_time() - own, begun[0] + time.perf_counter() - start
        return found

    def close(pool: Any, own: Any = _pool.Pool.close) -> None:
        after.update({pid: processor_seconds(pid) for pid in pids(pool)})
        own(pool)

    given: dict[str, Any] = {"engine": "ray", "workers": workers} if workers else {"threads": 2}
    shown, kept = _prepare.sharded, _pool.Pool.close
    _prepare.sharded, _pool.Pool.close, _ray.ShardWorker = sharded, close, Warm  # type: ignore[misc,assignment]
    start = time.process_time()
    begun[0] = time.perf_counter()
    try:
        mine_files(
            folder / "pairs.parquet",
            corpus=folder / "docs.parquet",
            query_vectors=folder / "q.npy",
            corpus_vectors=folder / "c.npy",
            output=folder / output,
            console=Console(quiet=True),
            **given,
        )
    finally:
        _prepare.sharded, _pool.Pool.close, _ray.ShardWorker = shown, kept, _worker.ShardWorker  # type: ignore[misc]
    driver = time.process_time() - start - waited[0]
    each = [after[pid] - before[pid] for pid in before]
    digest = hashlib.sha256((folder / output).read_bytes()).hexdigest()
    return {
        "workers": workers,
        "driver_processor_seconds": driver,
        "worker_processor_seconds": each,
        "processor_seconds": driver + sum(each),
        "seconds": time.perf_counter() - begun[0],
        "start_up_processor_seconds": sum(before.values()),
        "output": digest[:16],
    }


def made(folder: Path, queries: int, documents: int, width: int) -> None:
    """Write the files of a job, in a process of their own: one begins with the peak of the one that starts it."""
    jobs.WIDTH = width
    jobs.files(folder, queries, documents)


def in_a_process(target: Any, *given: Any) -> None:
    """Call a function in a new process."""
    process = get_context("spawn").Process(target=target, args=given)
    process.start()
    process.join()


def speed(folder: Path, rows: list[dict[str, Any]]) -> None:
    """All numbers of workers by turns, in one Ray."""
    import ray

    if not (folder / "c.npy").exists():
        in_a_process(made, folder, *SPEED)
    ray.init(num_cpus=max(WORKERS), include_dashboard=False, object_store_memory=512 << 20, log_to_driver=False)
    for turn in range(ROUNDS):
        for workers in WORKERS:
            if any((row["turn"], row["workers"]) == (turn, workers) for row in rows):
                continue
            row = {"turn": turn, "load": os.getloadavg()[0], **job(folder, workers, f"out-{workers}.parquet")}
            rows.append(row)
            yield_row(row)
    ray.shutdown()


def yield_row(row: dict[str, Any]) -> None:
    """Show a row."""
    print(json.dumps(row), flush=True)


def memory(folder: Path, rows: list[dict[str, Any]]) -> None:
    """The peak of the driver: the command itself, with two workers."""
    for documents in (20_000, *MEMORY):
        if any(row["documents"] == documents for row in rows):
            continue
        with tempfile.TemporaryDirectory(dir=folder) as place:
            in_a_process(made, Path(place), FEW, documents, NARROW)
            rows.append({"documents": documents, **peak(Path(place))})
            yield_row(rows[-1])


def peak(folder: Path) -> dict[str, Any]:
    """Run `naysay mine --engine ray` and return its peak memory."""
    command = [sys.executable, "-m", "naysay.cli", "mine", "pairs.parquet", "--corpus", "docs.parquet"]
    command += ["--query-vectors", "q.npy", "--corpus-vectors", "c.npy", "-k", "8", "-o", "out.parquet"]
    command += ["--engine", "ray", "--workers", "2", "--budget", "500MB"]
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    highest = {"RssAnon": 0, "VmRSS": 0}
    while process.poll() is None:
        try:
            lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        except OSError:
            break
        for line in lines:
            name, _, value = line.partition(":")
            if name in highest:
                highest[name] = max(highest[name], int(value.split()[0]) * 1024)
        time.sleep(0.05)
    if process.wait() != 0:
        message = f"the job ended with {process.returncode}"
        raise SystemExit(message)
    return {
        "peak_bytes": highest["VmRSS"],
        "peak_own_bytes": highest["RssAnon"],
        "seconds": time.perf_counter() - start,
    }


def model(folder: Path, rows: list[dict[str, Any]]) -> None:
    """Processor seconds of each term, the best of several."""
    from naysay.jobs._worker import Block, Corpus, ShardWorker
    from naysay.search._shards import Shard, merged
    from naysay.search.exact import Found

    importlib.import_module("torch")
    rows.clear()
    queries = np.load(folder / "q.npy")
    worker = ShardWorker(Corpus(folder / "c.npy", SPEED[1], SPEED[2], "float16"), 1, 2_000_000_000)
    shard = Shard(0, 5, 0, SPEED[1] // 5)

    def best(name: str, units: int, function: Any, repeats: int = 3) -> None:
        seconds = []
        for _ in range(repeats):
            start = time.process_time()
            function()
            seconds.append(time.process_time() - start)
        rows.append({"term": name, "units": units, "seconds": min(seconds)})
        yield_row(rows[-1])

    size, keys = shard.stop - shard.start, np.arange(1, 5001, dtype=np.uint32)
    best("norms of rows", size, lambda: worker.measured(shard, "cosine"))
    best("keys of rows", size, lambda: worker.matched(shard, keys, "<f4"))
    for count, depth in ((64, 11), (1024, 11), (4096, 11), (64, 100), (1024, 100)):
        known = np.zeros(count + 1, np.int64), np.empty(0, np.int64)
        block = Block(queries[:count], known, depth, None, "cosine", "auto", (2.0, 2.0))
        name = f"search to depth {depth} for {count} queries, rows"
        best(name, size, lambda block=block: worker.search(shard, block))
    rng = np.random.default_rng(0)
    scores = -np.sort(-rng.random((2, 4096, 100), np.float32), axis=2)
    lists = [Found(rng.integers(0, 1 << 40, (4096, 100)), part) for part in scores]
    best("merged candidates", 4096 * 100, lambda: merged(*lists))
    best("bytes hashed", 768_000_128, lambda: hashlib.file_digest((folder / "c.npy").open("rb"), "sha256"))
    for count in (2000, 12_000):
        place = folder / f"few-{count}"
        if not place.exists():
            place.mkdir()
            in_a_process(made, place, count, 20_000, NARROW)
        best(
            f"a whole job, 20,000 documents x {NARROW}, queries",
            count,
            lambda place=place: job(place, 0, "out.parquet"),
        )


def fitted(rows: list[dict[str, Any]]) -> dict[str, float]:
    """The terms of the cost model in processor seconds; those of a row and of a product by least squares."""
    each = {row["term"]: row["seconds"] / row["units"] for row in rows}
    product, row = _line(each, "search to depth 11 for ")
    deep, _ = _line(each, "search to depth 100 for ")
    few, many = (one for one in rows if one["term"].startswith("a whole job"))
    return {
        "row": row,
        "product": product,
        "deep": deep,
        "passes": each["norms of rows"] + each["keys of rows"],
        "merge": each["merged candidates"],
        "byte": each["bytes hashed"],
        "query": (many["seconds"] - few["seconds"]) / (many["units"] - few["units"]),
    }


def _line(each: dict[str, float], start: str) -> tuple[float, float]:
    """Seconds of a product, and of a row without one, from searches for several numbers of queries."""
    found = {int(name.removeprefix(start).split()[0]): value for name, value in each.items() if name.startswith(start)}
    slope, rest = np.polyfit(list(found), list(found.values()), 1)
    return float(slope), max(0.0, float(rest))


def cost(terms: dict[str, float], documents: int, queries: int, shards: int) -> dict[str, float]:
    """Processor seconds of all workers and of the driver, and bytes read and sent: the model of docs/scale.md."""
    row_bytes = 384 * 2
    samples, sampled = 2, 2000  # the fit of the judge and the report: queries that are searched deeper
    passes = -(-queries // 5000) + samples
    products = queries * terms["product"] + samples * min(queries, sampled) * terms["deep"]
    candidates = queries * shards * 100
    return {
        "workers": documents * (passes * terms["row"] + products + terms["passes"]),
        "read": documents * row_bytes * (passes + 2),
        "sent": candidates * 12,
        "driver": queries * terms["query"] + candidates * terms["merge"] + documents * row_bytes * terms["byte"],
    }


_PARTS = {"speed": speed, "model": model, "memory": memory}


def main() -> None:
    """Measure and write results/ray.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=[*_PARTS], choices=[*_PARTS])
    parser.add_argument("--folder", type=Path, required=True, help="where files are written; 800 bytes per document")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    target = args.out or Path("benchmarks/results/ray.json")
    found: dict[str, Any] = json.loads(target.read_text()) if target.exists() else {name: [] for name in _PARTS}
    for part in args.parts:
        try:
            _PARTS[part](args.folder, found.setdefault(part, []))
        finally:
            write("ray", found, args.out)


if __name__ == "__main__":
    main()
