"""What do known pairs cost in memory, if four worker processes draw negatives?

Each way runs in a process of its own. All workers draw until they have read rows of most anchors, and wait. The kernel
then tells what each has for itself (unique) and its share of all memory (proportional, which adds up): Linux only, and
6 GB of memory for 1e8 pairs.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch.multiprocessing

import naysay as ns
from benchmarks.speed.harness import Options, Row, child, command

N_WORKERS = 4
PER_ANCHOR, STRATUM = 100, 100_000
ROWS, K, BATCHES = 8192, 4, 150
WAYS = ("no pairs, spawned", "in memory, spawned", "shared(folder), spawned", "in memory, forked")
LOADERS = ("data.loader, no pairs, spawned", "data.loader, shared(folder), spawned")


def known_pairs(pairs: int) -> ns.Positives:
    """100 items of each anchor, one from each hundredth of the items."""
    anchors = max(1, pairs // PER_ANCHOR)
    width = min(PER_ANCHOR, pairs)
    items = np.random.default_rng(0).integers(0, STRATUM, (anchors, width), np.int32)
    items += np.arange(width, dtype=np.int32) * STRATUM
    return ns.Positives(np.arange(anchors + 1) * width, items.ravel(), width * STRATUM)


def memory(process: Any) -> dict[str, float]:
    """What a process has for itself, and its share of all memory, in MB."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()[1:]
    found = {line.split(":")[0]: int(line.split()[1]) / 1024 for line in lines}
    return {"unique_mb": found["Private_Clean"] + found["Private_Dirty"], "proportional_mb": found["Pss"]}


def draw(worker: int, sampler: Any, anchors: int, done: Any, measured: Any) -> None:
    """A worker: draw, say so, and stay until the memory is measured."""
    ns.set_threads(1)
    total = 0
    for step in range(BATCHES):
        rng = ns.rng_for(0, step, worker=worker)
        query = ns.Query(rng.integers(0, anchors, ROWS))
        total += int(sampler.sample(query, K, rng=rng).ids.sum())
    done.put(total)
    measured.wait()


def of_workers(way: str, pairs: int, workers: int, folder: str) -> dict[str, Any]:
    """Workers that are started with a sampler."""
    known = known_pairs(1 if way.startswith("no pairs") else pairs)
    if way.startswith("shared"):
        known = known.shared(folder)
    context = torch.multiprocessing.get_context("fork" if way.endswith("forked") else "spawn")
    sampler, done, measured = ns.samplers.Static(ns.pools.Everything(known)), context.SimpleQueue(), context.Event()
    started = [
        context.Process(target=draw, args=(worker, sampler, known.n_anchors, done, measured))
        for worker in range(workers)
    ]
    for process in started:
        process.start()
    drawn = sorted(done.get() for _ in started)
    found = answer(known, [process.pid for process in started])
    measured.set()
    for process in started:
        process.join()
    return found | {"sum_of_draws": drawn}


def of_loader(way: str, pairs: int, workers: int, folder: str) -> dict[str, Any]:
    """The workers of `data.loader`."""
    known = known_pairs(workers * ROWS if "no pairs" in way else pairs)
    if "shared" in way:
        known = known.shared(folder)
    sampler = ns.samplers.Static(ns.pools.Everything(known))
    loader = ns.data.loader(known, sampler, min(ROWS, len(known) // workers), k=K, workers=workers, context="spawn")
    batches = iter(loader)
    for _ in range(min(BATCHES, len(loader) - 1)):
        next(batches)
    return answer(known, [process.pid for process in multiprocessing.active_children()])


def answer(known: ns.Positives, processes: list[Any]) -> dict[str, Any]:
    """The memory of all workers, and of this process."""
    return {
        "pairs": len(known),
        "pairs_mb": known.nbytes / 2**20,
        "workers": [memory(process) for process in processes],
        "main": memory("self"),
    }


def ways(options: Options) -> Row:
    """Every way in a process of its own; all that hold the pairs draw the same."""
    pairs, found = options.size(100_000_000, 100_000), {}
    for way in (*WAYS, *LOADERS):
        given = ["-m", "benchmarks.speed.memory", "--way", way, str(pairs), str(options.size(N_WORKERS, 2))]
        found[way] = json.loads(child(given).stdout)
    drawn = {way: tuple(found[way].pop("sum_of_draws")) for way in WAYS}
    if len({drawn[way] for way in WAYS[1:]}) != 1:
        sys.exit("the ways drew differently")
    return found


def one_way(way: str, pairs: int, workers: int) -> None:
    """Measure one way, and print it."""
    with tempfile.TemporaryDirectory() as folder:
        measure = of_loader if way in LOADERS else of_workers
        print(json.dumps(measure(way, pairs, workers, f"{folder}/known")))


RESULTS = {
    "shared_positives": {"n_workers": N_WORKERS, "draws_of_a_worker": BATCHES * ROWS * K, "ways": ways},
}

if __name__ == "__main__":
    if sys.argv[1:2] == ["--way"]:
        one_way(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        command(__doc__, RESULTS)
