"""Counts the known positives among 1e8 draws on real data: there must be none.

    python -m benchmarks.exclusion.leaks DATA [--draws 1e8]

DATA   a folder with yelp2018/interactions.npz (train_user, train_item) and fb15k-237/triples.npz (train, valid, test)

The check does not use naysay: every drawn pair is searched in a sorted list of all known pairs.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import naysay as ns
from benchmarks.harness import write

K, BATCH = 64, 16_384


def leaks(codes: NDArray[np.int64], drawn: NDArray[np.int64]) -> int:
    """How many of `drawn` are in the sorted `codes`."""
    places = np.minimum(np.searchsorted(codes, drawn), len(codes) - 1)
    return int((codes[places] == drawn).sum())


def recommendation(folder: Path, draws: int) -> dict[str, dict[str, Any]]:
    """Users and items of yelp2018: uniform and popularity, distinct and not, a quarter of the draws each."""
    data = np.load(folder / "yelp2018" / "interactions.npz")
    users, items = data["train_user"].astype(np.int64), data["train_item"].astype(np.int64)
    known = ns.Positives.from_pairs(users, items)
    codes = np.sort(users * known.n_items + items)
    weights = ns.pools.popularity(known, 0.75)
    found = {}
    for name, pool in {
        "uniform": ns.pools.Everything(known, distinct=False),
        "uniform distinct": ns.pools.Everything(known),
        "popularity": ns.pools.Everything(known, weights, distinct=False),
        "popularity distinct": ns.pools.Everything(known, weights),
    }.items():
        made = bad = step = 0
        start = time.perf_counter()
        while made < draws // 4:
            batch = ns.rng_for(1, step).integers(0, known.n_anchors, BATCH)
            ids = pool.draw(ns.Query(batch), K, rng=ns.rng_for(0, step)).ids
            bad += leaks(codes, (batch[:, None] * known.n_items + ids).ravel())
            made += ids.size
            step += 1
        found[f"yelp2018 {name}"] = {"draws": made, "leaks": bad, "seconds": time.perf_counter() - start}
    return found


def corruption(folder: Path, draws: int) -> dict[str, dict[str, Any]]:
    """Triples of FB15k-237, filtered against all splits: uniform, Bernoulli and typed, a third of the draws each."""
    splits = np.load(folder / "fb15k-237" / "triples.npz")
    train, held_out = splits["train"].astype(np.int64), [splits["valid"], splits["test"]]
    known = np.concatenate([train, *held_out]).astype(np.int64)
    n_entities, n_relations = int(known[:, [0, 2]].max()) + 1, int(known[:, 1].max()) + 1
    codes = np.sort((known[:, 0] * n_relations + known[:, 1]) * n_entities + known[:, 2])
    found = {}
    for name, settings in {
        "corruption": {},
        "bernoulli": {"choice": "bernoulli"},
        "typed": {"domains": "observed", "ranges": "observed"},
    }.items():
        pool = ns.pools.Corruption(train, held_out, **settings)
        made = bad = step = 0
        start = time.perf_counter()
        while made < draws // 3:
            query = ns.Query(train[ns.rng_for(1, step).integers(0, len(train), BATCH)])
            triples = pool.corrupted(query, pool.draw(query, K, rng=ns.rng_for(0, step)))
            triples = triples[triples[..., 0] >= 0]
            bad += leaks(codes, (triples[:, 0] * n_relations + triples[:, 1]) * n_entities + triples[:, 2])
            made += len(triples)
            step += 1
        found[f"fb15k-237 {name}"] = {"draws": made, "leaks": bad, "seconds": time.perf_counter() - start}
    return found


def main() -> None:
    """Run both and write results/no_leaks.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--draws", type=float, default=1e8)
    args = parser.parse_args()
    result = recommendation(args.data, int(args.draws)) | corruption(args.data, int(args.draws))
    for name, row in result.items():
        print(f"{name:28s} {row['draws']:>12,} draws  {row['leaks']} leaks  {row['seconds']:.1f} s")
    write("no_leaks", {"k": K, "cases": result})


if __name__ == "__main__":
    main()
