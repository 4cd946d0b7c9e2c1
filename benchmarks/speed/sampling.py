"""Static draws against RecBole, PyKEEN, PyG and a plain numba loop, all in one run.

    python -m benchmarks.speed.sampling --peers DIR --data DIR [--repeats 5] [--threads 1]

--peers   where benchmarks/peers/setup.sh put the peers' environments
--data    a folder with fb15k-237/triples.npz (arrays train, valid, test of head, relation, tail ids)
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import naysay as ns
from benchmarks.harness import Peer, alternate, show, write
from benchmarks.speed.plain_loop import rank_shift
from benchmarks.speed.worlds import recommendation

BATCH, STEPS = 4096, 20


def recommendation_cases(peers: Path, folder: Path, repeats: int, threads: int) -> dict[str, Any]:
    """50k users x 40k items, 1.9 M positives, K = 16: uniform and popularity^0.75."""
    users, items, n_users, n_items = recommendation()
    batches = np.random.default_rng(1).integers(0, n_users, (STEPS, BATCH))
    data = folder / "recommendation.npz"
    k = 16
    np.savez(data, users=users, items=items, n_users=n_users, n_items=n_items, batch=batches, k=k)
    known = ns.Positives.from_pairs(users, items, n_users, n_items)

    def ours(pool: ns.pools.Everything) -> Callable[[], int]:
        def run() -> int:
            return sum(
                pool.draw(ns.Query(batch), k, rng=ns.rng_for(0, step)).ids.size for step, batch in enumerate(batches)
            )

        return run

    def plain() -> int:
        return sum(
            rank_shift(step, batch, known.indptr, known.indices, n_items, np.empty((BATCH, k), np.int64)).size
            for step, batch in enumerate(batches)
        )

    weights = ns.pools.popularity(known, 0.75)
    pools = {
        "uniform": {
            "naysay": ns.pools.Everything(known, distinct=False),
            "naysay distinct": ns.pools.Everything(known),
        },
        "popularity": {
            "naysay": ns.pools.Everything(known, weights, distinct=False),
            "naysay distinct": ns.pools.Everything(known, weights),
        },
    }
    found: dict[str, Any] = {"positives": len(known), "k": k, "batch": BATCH, "bytes": known.nbytes}
    for case, by_name in pools.items():
        runs = {name: ours(pool) for name, pool in by_name.items()}
        if case == "uniform":
            runs["plain numba rank shift"] = plain
        peer = Peer(peers, "recbole", data, case, threads)
        found[case] = alternate(runs, [peer], repeats)
        peer.stop()
        for name, pool in by_name.items():
            drawn = pool.draw(ns.Query(batches[0]), k, rng=ns.rng_for(0)).ids
            made = batches[0][:, None] * n_items + drawn
            found[case][name]["leaks"] = int(np.isin(made, users * n_items + items).sum())
        show(f"{case}, 50k x 40k, {len(known):,} positives, K = {k}", found[case], "recbole")
    return found


def corruption_cases(peers: Path, folder: Path, source: Path, repeats: int, threads: int) -> dict[str, Any]:
    """FB15k-237, K = 256, filtered against all three splits."""
    splits = np.load(source / "fb15k-237" / "triples.npz")
    train, held_out = splits["train"].astype(np.int64), [splits["valid"], splits["test"]]
    known = np.concatenate([train, *held_out]).astype(np.int64)
    n_entities, n_relations = int(known[:, [0, 2]].max()) + 1, int(known[:, 1].max()) + 1
    batches = train[np.random.default_rng(2).integers(0, len(train), (STEPS, 1024))]
    data, k = folder / "kg.npz", 256
    np.savez(data, train=train, known=known, n_entities=n_entities, n_relations=n_relations, batch=batches, k=k)
    start = time.perf_counter()
    pools = {
        "naysay": ns.pools.Corruption(train, held_out, distinct=False),
        "naysay distinct": ns.pools.Corruption(train, held_out),
        "naysay typed": ns.pools.Corruption(train, held_out, domains="observed", ranges="observed"),
    }
    build = (time.perf_counter() - start) / len(pools)
    codes = np.sort((known[:, 0] * n_relations + known[:, 1]) * n_entities + known[:, 2])

    def ours(pool: ns.pools.Corruption) -> Callable[[], int]:
        def run() -> int:
            drawn = (pool.draw(ns.Query(batch), k, rng=ns.rng_for(0, step)) for step, batch in enumerate(batches))
            return sum(int(np.count_nonzero(negatives.ids >= 0)) for negatives in drawn)

        return run

    peer = Peer(peers, "pykeen", data, "bloom", threads)
    rows = alternate({name: ours(pool) for name, pool in pools.items()}, [peer], repeats)
    peer.stop()
    for name, pool in pools.items():
        query = ns.Query(batches[0])
        triples = pool.corrupted(query, pool.draw(query, k, rng=ns.rng_for(0)))
        made = (triples[..., 0] * n_relations + triples[..., 1]) * n_entities + triples[..., 2]
        rows[name]["leaks"] = int(np.isin(made[triples[..., 0] >= 0], codes).sum())
    show(f"corruption, FB15k-237, {len(known):,} triples, K = {k}", rows, "pykeen")
    return {"triples": len(known), "k": k, "batch": 1024, "build_seconds": build, "bloom": rows}


def non_edge_cases(peers: Path, folder: Path, repeats: int, threads: int) -> dict[str, Any]:
    """4,096 non-edges of a graph of 100k nodes and 2 M edges."""
    n_nodes, n = 100_000, 4096
    edges = np.random.default_rng(3).integers(0, n_nodes, (2, 2_000_000))
    data = folder / "graph.npz"
    np.savez(data, edge_index=edges, n_nodes=n_nodes, n=n)
    ns.pools.Everything(ns.Positives.from_edges([0], [1])).draw_pairs(1, rng=ns.rng_for(0))  # compile first
    start = time.perf_counter()
    pool = ns.pools.Everything(ns.Positives.from_edges(*edges, n_nodes, directed=True))
    pool.draw_pairs(1, rng=ns.rng_for(0))
    build = time.perf_counter() - start
    peer = Peer(peers, "pyg", data, "non_edges", threads)
    rows = alternate({"naysay": lambda: len(pool.draw_pairs(n, rng=ns.rng_for(0))[0])}, [peer], repeats)
    peer.stop()
    sources, targets = pool.draw_pairs(n, rng=ns.rng_for(0))
    rows["naysay"]["leaks"] = int(np.isin(sources * n_nodes + targets, edges[0] * n_nodes + edges[1]).sum())
    show(f"{n:,} non-edges, 100k nodes, 2 M edges (index built once in {build:.2f} s)", rows, "pyg")
    return {"nodes": n_nodes, "edges": 2_000_000, "n": n, "build_seconds": build, "non_edges": rows}


def main() -> None:
    """Run all cases and write results/sampling.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for threads in args.threads:
            ns.set_threads(threads)
            print(f"--- {threads} thread{'s' if threads > 1 else ''}, ours and theirs")
            result[f"threads_{threads}"] = {
                "recommendation": recommendation_cases(args.peers, Path(folder), args.repeats, threads),
                "corruption": corruption_cases(args.peers, Path(folder), args.data, args.repeats, threads),
                "graph": non_edge_cases(args.peers, Path(folder), args.repeats, threads),
            }
    write("sampling", result, args.out)


if __name__ == "__main__":
    main()
