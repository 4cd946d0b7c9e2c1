"""What do known pairs cost in memory, if four worker processes draw negatives?

python -m benchmarks.speed.shared_positives [--pairs 100000000] [--workers 4]

Each way runs in a process of its own. All workers draw until they have read rows of most anchors, and wait. The kernel
then tells what each has for itself (unique) and its share of all memory (proportional, which adds up): Linux only.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch.multiprocessing

import naysay as ns
from benchmarks.harness import write

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


def main() -> None:
    """Measure and write results/shared_positives.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=100_000_000)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--way", choices=(*WAYS, *LOADERS))
    args = parser.parse_args()
    if args.way is not None:
        with tempfile.TemporaryDirectory() as folder:
            measure = of_loader if args.way in LOADERS else of_workers
            print(json.dumps(measure(args.way, args.pairs, args.workers, f"{folder}/known")))
        return
    sizes = ["--pairs", str(args.pairs), "--workers", str(args.workers)]
    ways = {}
    for way in (*WAYS, *LOADERS):
        command = [sys.executable, "-m", "benchmarks.speed.shared_positives", *sizes, "--way", way]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        ways[way] = json.loads(done.stdout)
        print(way, ways[way])
    drawn = {tuple(ways[way].pop("sum_of_draws")) for way in WAYS[1:]}
    ways[WAYS[0]].pop("sum_of_draws")
    if len(drawn) != 1:
        sys.exit("the ways drew differently")
    write("shared_positives", {"n_workers": args.workers, "draws_of_a_worker": BATCHES * ROWS * K, "ways": ways})


if __name__ == "__main__":
    main()
