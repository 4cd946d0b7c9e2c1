"""What hard negatives cost: a cache and a generator against dynamic sampling, the nearest items, and batches.

    python -m benchmarks.speed.hard_sources [--repeats 7] [--threads 1 2]

Cached and Dynamic score as many candidates for each row, by dot products of d = 64 in torch; a step is sample and
observe for different anchors. Nearest draws from the 200 nearest of 100,000 vectors; the plain way is a product and
topk in torch, which excludes nothing. Learned has 32 candidates, as has the Dynamic beside it; its step is sample and
observe, too. Walk plans an epoch; its links are given.

Ratios are of the processor's time. By default torch's threads spin while they wait for each other. On a machine that
others use, that counts as time of whoever makes more calls of torch, so they sleep here (OMP_WAIT_POLICY=passive).
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import naysay as ns
from benchmarks.harness import sleep_while_waiting, write
from benchmarks.speed.worlds import recommendation

BATCH, WIDTH, CANDIDATES, K = 4096, 64, 64, 8
N_USERS, N_ITEMS, N_PAIRS = 9_430, 16_820, 1_000_000
N_VECTORS, QUERIES, DEPTH = 100_000, 1024, 200
N_ROWS, LINKS = 1_000_000, 100
LEARNED = 32  # candidates
LIMITS = {
    "Cached against Dynamic": 1.3,
    "Nearest against torch": 3.0,
    "Walk, seconds": 60,
    "Learned against Dynamic": 2,
}


def dot_products() -> Callable[[Tensor, Tensor], Tensor]:
    """The score of a model of random vectors."""
    start = torch.Generator().manual_seed(0)
    users, items = (0.1 * torch.randn(n, WIDTH, generator=start) for n in (N_USERS, N_ITEMS))

    def score(anchors: Tensor, ids: Tensor) -> Tensor:
        vectors = torch.nn.functional.embedding(ids, items)
        return torch.einsum("bd,bnd->bn", users[anchors], vectors)

    return score


def _products(users: Tensor, items: Tensor, anchors: Tensor, ids: Tensor) -> Tensor:
    """A matrix factorisation as generator."""
    return torch.einsum("bd,bnd->bn", users[anchors], items[ids])


def learned_steps(known: ns.Positives) -> dict[str, Callable[[], int]]:
    """A step of Dynamic, and of Learned with the exact and with an estimated gradient."""
    score, pool = dot_products(), ns.pools.Everything(known)
    made: dict[str, Any] = {"Dynamic": ns.samplers.Dynamic(pool, score, LEARNED)}
    for baseline in ("exact", "running"):
        users, items = (0.1 * torch.randn(n, WIDTH) for n in (N_USERS, N_ITEMS))
        optimizer = torch.optim.SGD([users.requires_grad_(), items.requires_grad_()], 0.1)
        generator = partial(_products, users, items)
        learned = ns.samplers.Learned(pool, generator, optimizer, score, LEARNED, baseline=baseline)
        made[f"Learned, {baseline}"] = learned

    def step(name: str) -> int:
        sampler, query = made[name], ns.Query(torch.from_numpy(np.random.default_rng(1).permutation(N_USERS)[:BATCH]))
        negatives = sampler.sample(query, K, rng=ns.rng_for(0))
        if hasattr(sampler, "observe"):
            sampler.observe(query, negatives)
        return int(negatives.mask.sum())

    return {name: partial(step, name) for name in made}


def steps_of(known: ns.Positives, choose: str) -> dict[str, Callable[[], int]]:
    """A step of each sampler."""
    score, pool = dot_products(), ns.pools.Everything(known)
    dynamic = ns.samplers.Dynamic(pool, score, CANDIDATES)
    half = CANDIDATES // 2
    fresh = CANDIDATES - half if choose == "uniform" else CANDIDATES - 2 * (CANDIDATES // 4)
    size = half if choose == "uniform" else CANDIDATES // 4  # which sample scores, too
    cached = ns.samplers.Cached(pool, score, size, fresh, choose=choose)
    done = {"dynamic": 0, "cached": 0}

    def query(name: str) -> ns.Query:
        done[name] += 1
        order = np.random.default_rng(done[name]).permutation(N_USERS)[:BATCH]
        return ns.Query(torch.from_numpy(order), step=done[name])

    def dynamic_step() -> int:
        asked = query("dynamic")
        return int(dynamic.sample(asked, K, rng=ns.rng_for(0, asked.step)).mask.sum())

    def cached_step() -> int:
        asked = query("cached")
        negatives = cached.sample(asked, K, rng=ns.rng_for(0, asked.step))
        cached.observe(asked, negatives)
        return int(negatives.mask.sum())

    for _ in range(6):  # until caches are full
        cached_step()
    return {"Dynamic": dynamic_step, "Cached": cached_step}


def searches() -> dict[str, Callable[[], int]]:
    """A draw from the nearest items, and the plain product and top-k."""
    rng = np.random.default_rng(0)
    items, queries = (rng.standard_normal((n, WIDTH)).astype(np.float32) for n in (N_VECTORS, QUERIES))
    anchors = np.repeat(np.arange(QUERIES), 20)
    known = ns.Positives.from_pairs(anchors, rng.integers(0, N_VECTORS, len(anchors)), QUERIES, N_VECTORS)
    pool = ns.pools.Nearest(items, DEPTH, known, metric="dot")
    query = ns.Query(np.arange(QUERIES), vectors=queries)
    left, right = torch.from_numpy(queries), torch.from_numpy(items)

    def nearest() -> int:
        return pool.draw(query, K, rng=ns.rng_for(0)).ids.size

    def plain() -> int:
        return (left @ right.T).topk(DEPTH, dim=1).indices[:, :K].numel()

    return {"torch": plain, "Nearest": nearest}


def walks() -> dict[str, Any]:
    """The plan of an epoch of a million rows with 100 links each, in clusters of 500."""
    rng = np.random.default_rng(0)
    walk = ns.batches.RandomWalkBatches(N_ROWS, 256, neighbours=LINKS)
    cluster = np.arange(N_ROWS)[:, None] // 500 * 500
    walk.restore({"links": (cluster + rng.integers(0, 500, (N_ROWS, LINKS))).astype(np.int32)})
    walk.plan(0, rng=ns.rng_for(1))  # compiles
    tracemalloc.start()
    wall, cpu = time.perf_counter(), time.process_time()
    plan = walk.plan(0, rng=ns.rng_for(0))
    found = {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}
    found["bytes_per_row"] = tracemalloc.get_traced_memory()[1] / N_ROWS
    tracemalloc.stop()
    return {**found, "rows": int((plan >= 0).sum()), "dropped": walk.dropped}


def alternate(ours: dict[str, Callable[[], int]], repeats: int) -> dict[str, dict[str, float]]:
    """The best of several repetitions in turn, in seconds and in seconds of the processor."""
    rows: dict[str, dict[str, float]] = {}
    for _ in range(repeats):
        for name, function in ours.items():
            function()
            wall, cpu = time.perf_counter(), time.process_time()
            function()
            now = {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}
            rows[name] = {key: min(value, rows.get(name, now)[key]) for key, value in now.items()}
    return rows


def ratio(rows: dict[str, Any], ours: str, other: str) -> float:
    """How many times as much of the processor's time ours takes."""
    return float(rows[ours]["cpu_seconds"] / rows[other]["cpu_seconds"])


def main() -> None:
    """Run both and write results/hard_sources.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    sleep_while_waiting("benchmarks.speed.hard_sources")
    known = ns.Positives.from_pairs(*recommendation(N_USERS, N_ITEMS, N_PAIRS))
    result: dict[str, Any] = {"batch": BATCH, "candidates": CANDIDATES, "k": K, "width": WIDTH, "limits": LIMITS}
    result |= {"vectors": N_VECTORS, "queries": QUERIES, "depth": DEPTH, "torch": torch.__version__}
    for threads in args.threads:
        ns.set_threads(threads)
        torch.set_num_threads(threads)
        found: dict[str, Any] = {}
        for choose in ("uniform", "softmax"):
            rows = alternate(steps_of(known, choose), args.repeats)
            name = f"Cached, {choose} choice"
            found[name] = {**rows, "ratio": ratio(rows, "Cached", "Dynamic")}
            print(f"{threads} threads  {name:28s} {found[name]['ratio']:.2f} x Dynamic")
        rows = alternate(learned_steps(known), args.repeats)
        for name in ("Learned, exact", "Learned, running"):
            found[name] = {"Dynamic": rows["Dynamic"], "Learned": rows[name], "ratio": ratio(rows, name, "Dynamic")}
            print(f"{threads} threads  {name:28s} {found[name]['ratio']:.2f} x Dynamic")
        rows = alternate(searches(), args.repeats)
        found["Nearest"] = {**rows, "ratio": ratio(rows, "Nearest", "torch")}
        print(f"{threads} threads  {'Nearest':28s} {found['Nearest']['ratio']:.2f} x torch")
        result[f"threads_{threads}"] = found
    result["walk"] = walks()
    print(f"Walk: an epoch of {N_ROWS:,} rows in {result['walk']['seconds']:.1f} s")
    write("hard_sources", result, args.out)


if __name__ == "__main__":
    main()
