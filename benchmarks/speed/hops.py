"""Microseconds per row of the pools over a graph, on the co-authorship graph CA-AstroPh (18,772 nodes).

    python -m benchmarks.speed.hops DATA_FOLDER [--out results.json]

DATA_FOLDER   holds ca-astroph/graph.npz: arrays edges (E, 2), undirected, and n_nodes
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

import numpy as np

import naysay as ns
from benchmarks.harness import timed, write
from naysay.kernels.threads import threads
from naysay.pools.khop import KHop
from naysay.pools.pagerank import PageRank
from naysay.pools.walks import Walks
from naysay.types import Pool

ROWS, K, REPEATS = 1024, 16, 5


def drawn(pool: Pool, anchors: np.ndarray) -> int:
    """One draw; how many negatives it made."""
    return int((pool.draw(ns.Query(anchors), K, rng=ns.rng_for(0)).ids >= 0).sum())


def main() -> None:
    """Time each pool, best of five, and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    with np.load(options.data / "ca-astroph" / "graph.npz") as arrays:
        edges, n_nodes = arrays["edges"], int(arrays["n_nodes"])
    graph = ns.Positives.from_edges(edges[:, 0], edges[:, 1], n_nodes)
    anchors = ns.rng_for(0).integers(0, n_nodes, ROWS)
    pools: dict[str, Pool] = {
        "KHop(2)": KHop(graph, hops=2),
        "KHop(3)": KHop(graph, hops=3),
        "Walks(length=2)": Walks(graph, length=2),
        "PageRank(2000, 5000), tolerance 1e-6": PageRank(graph, (2000, 5000)),
        "PageRank(2000, 5000), tolerance 1e-5": PageRank(graph, (2000, 5000), tolerance=1e-5),
    }
    rows = {}
    for name, pool in pools.items():
        drawn(pool, anchors[:2])  # compiles
        best = min((timed(partial(drawn, pool, anchors)) for _ in range(REPEATS)), key=lambda run: run["seconds"])
        per_row = round(1e6 * best["seconds"] / ROWS, 2)
        rows[name] = {"microseconds_per_row": per_row, "filled": best["negatives"], "asked": ROWS * K}
        print(f"{name:40s} {per_row:10.2f} us per row   {best['negatives']:6d} of {ROWS * K} slots filled")
    setting = {"nodes": n_nodes, "undirected_edges": len(edges), "rows": ROWS, "k": K, "repeats": REPEATS}
    write("hops", {**setting, "threads": threads(), "pools": rows}, options.out)


if __name__ == "__main__":
    main()
