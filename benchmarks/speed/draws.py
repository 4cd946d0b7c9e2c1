"""Draws: against RecBole, PyKEEN and PyG, how they grow, what pools over a graph cost, and that no positive comes back.

sampling   uniform and popularity draws (RecBole, and a plain numba loop), filtered corruption (PyKEEN), non-edges (PyG)
growth     time and memory by the number of items and of known pairs
hops       pools over the graph CA-AstroPh
no_leaks   known positives among 1e8 draws of yelp2018 and FB15k-237, searched without naysay: there must be none
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

import naysay as ns
from benchmarks import readers
from benchmarks.speed.harness import Options, Peer, Row, alternate, command
from benchmarks.speed.worlds import recommendation, uniform_pairs

BATCH, STEPS, K = 4096, 20, 16
ROWS = 1024  # anchors of a draw over a graph
LEAK_BATCH, LEAK_K = 16_384, 64
Draw = Callable[[], int]


@numba.njit(nogil=True, cache=True)
def rank_shift(seed: int, anchors: Any, indptr: Any, indices: Any, n_items: int, out: Any) -> Any:
    """The baseline: uniform ids outside each anchor's row by a rank and a binary search; no log_q, no checks."""
    state = np.uint64(seed)
    for row in range(len(anchors)):
        start, stop = indptr[anchors[row]], indptr[anchors[row] + 1]
        for slot in range(out.shape[1]):
            state += np.uint64(0x9E3779B97F4A7C15)
            bits = state
            bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            bits = bits ^ (bits >> np.uint64(31))
            rank = np.int64(((bits >> np.uint64(32)) * np.uint64(n_items - (stop - start))) >> np.uint64(32))
            low, high = start, stop
            while low < high:
                middle = (low + high) >> 1
                if indices[middle] - (middle - start) <= rank:
                    low = middle + 1
                else:
                    high = middle
            out[row, slot] = rank + (low - start)
    return out


def slots(ids: NDArray[Any]) -> int:
    """All slots of a draw."""
    return int(ids.size)


def filled(ids: NDArray[Any]) -> int:
    """Those that are not empty."""
    return int(np.count_nonzero(ids >= 0))


def every_batch(pool: Any, batches: NDArray[Any], k: int, count: Callable[[Any], int] = slots) -> Draw:
    """A call that draws for all batches, and says how many negatives it made."""

    def run() -> int:
        drawn = (pool.draw(ns.Query(batch), k, rng=ns.rng_for(0, step)).ids for step, batch in enumerate(batches))
        return sum(map(count, drawn))

    return run


def in_sorted(codes: NDArray[np.int64], drawn: NDArray[np.int64]) -> int:
    """How many of `drawn` are in the sorted `codes`."""
    places = np.minimum(np.searchsorted(codes, drawn), len(codes) - 1)
    return int((codes[places] == drawn).sum())


def sampling(threads: int, options: Options) -> Row:
    """All comparisons with so many threads."""
    options = options.use_threads(threads)
    found: Row = {"recommendation": users_and_items(options), "graph": non_edges(options)}
    return found | ({"corruption": corruption(options)} if options.data else {})


def users_and_items(options: Options) -> Row:
    """50k users x 40k items, 1.9 M positives, K = 16: uniform and popularity^0.75."""
    sizes = (options.size(50_000, 500), options.size(40_000, 400), options.size(1_900_000, 4000))
    users, items, n_users, n_items = recommendation(*sizes)
    known = ns.Positives.from_pairs(users, items, n_users, n_items)
    batches = np.random.default_rng(1).integers(0, n_users, (STEPS, BATCH))
    arrays = {"users": users, "items": items, "n_users": n_users, "n_items": n_items, "batch": batches, "k": K}
    codes = np.sort(users * n_items + items)
    found: Row = {"positives": len(known), "k": K, "batch": BATCH, "bytes": known.nbytes}

    def plain() -> int:
        tables = known.indptr, known.indices, n_items
        return sum(
            rank_shift(step, batch, *tables, np.empty((BATCH, K), np.int64)).size for step, batch in enumerate(batches)
        )

    for case, weights in (("uniform", None), ("popularity", ns.pools.popularity(known, 0.75))):
        pools = {
            "naysay": ns.pools.Everything(known, weights, distinct=False),
            "naysay distinct": ns.pools.Everything(known, weights),
        }
        runs = {name: every_batch(pool, batches, K) for name, pool in pools.items()}
        runs |= {"plain numba rank shift": plain} if case == "uniform" else {}
        found[case], _ = alternate(runs, options.repeats, [Peer(options, "recbole", arrays, case)])
        for name, pool in pools.items():
            ids = pool.draw(ns.Query(batches[0]), K, rng=ns.rng_for(0)).ids
            found[case][name]["leaks"] = in_sorted(codes, (batches[0][:, None] * n_items + ids).ravel())
    return found


def corruption(options: Options) -> Row:
    """FB15k-237, K = 256, filtered against all three splits."""
    splits = readers.arrays(options.data, "fb15k-237", "triples.npz")  # type: ignore[arg-type]
    train, held_out = splits["train"], [splits["valid"], splits["test"]]
    known = np.concatenate([train, *held_out])
    n_entities, n_relations = int(known[:, [0, 2]].max()) + 1, int(known[:, 1].max()) + 1
    k = options.size(256, 4)
    batches = train[np.random.default_rng(2).integers(0, len(train), (options.size(STEPS, 2), 1024))]
    pools = {
        "naysay": ns.pools.Corruption(train, held_out, distinct=False),
        "naysay distinct": ns.pools.Corruption(train, held_out),
        "naysay typed": ns.pools.Corruption(train, held_out, domains="observed", ranges="observed"),
    }
    arrays = {
        "train": train,
        "known": known,
        "n_entities": n_entities,
        "n_relations": n_relations,
        "batch": batches,
        "k": k,
    }
    runs = {name: every_batch(pool, batches, k, filled) for name, pool in pools.items()}
    rows, _ = alternate(runs, options.repeats, [Peer(options, "pykeen", arrays, "bloom")])
    codes = np.sort((known[:, 0] * n_relations + known[:, 1]) * n_entities + known[:, 2])
    for name, pool in pools.items():
        query = ns.Query(batches[0])
        made = pool.corrupted(query, pool.draw(query, k, rng=ns.rng_for(0)))
        made = made[made[..., 0] >= 0]
        rows[name]["leaks"] = in_sorted(codes, (made[:, 0] * n_relations + made[:, 1]) * n_entities + made[:, 2])
    return {"triples": len(known), "k": k, "batch": 1024, "bloom": rows}


def non_edges(options: Options) -> Row:
    """4,096 non-edges of a graph of 100k nodes and 2 M edges."""
    n_nodes, n_edges, n = options.size(100_000, 1000), options.size(2_000_000, 5000), 4096
    edges = np.random.default_rng(3).integers(0, n_nodes, (2, n_edges))
    ns.pools.Everything(ns.Positives.from_edges([0], [1])).draw_pairs(1, rng=ns.rng_for(0))  # compiles
    start = time.perf_counter()
    pool = ns.pools.Everything(ns.Positives.from_edges(*edges, n_nodes, directed=True))
    pool.draw_pairs(1, rng=ns.rng_for(0))
    build = time.perf_counter() - start
    peer = Peer(options, "pyg", {"edge_index": edges, "n_nodes": n_nodes, "n": n}, "non_edges")
    rows, _ = alternate({"naysay": lambda: len(pool.draw_pairs(n, rng=ns.rng_for(0))[0])}, options.repeats, [peer])
    sources, targets = pool.draw_pairs(n, rng=ns.rng_for(0))
    rows["naysay"]["leaks"] = in_sorted(np.sort(edges[0] * n_nodes + edges[1]), sources * n_nodes + targets)
    return {"nodes": n_nodes, "edges": n_edges, "n": n, "build_seconds": build, "non_edges": rows}


def growth(sizes: tuple[tuple[int, int], ...], options: Options) -> list[Row]:
    """Build time, bytes and nanoseconds per draw for four pools, by (items, known pairs); about 40 an anchor."""
    rows = []
    for n_items, n_pairs in sizes:
        n_items, n_pairs = options.size(n_items, 1000), options.size(n_pairs, 10_000)
        n_anchors = max(1000, n_pairs // 40)
        anchors, items, _, _ = uniform_pairs(n_anchors, n_items, n_pairs)
        start = time.perf_counter()
        known = ns.Positives.from_pairs(anchors, items, n_anchors, n_items)
        row: Row = {"items": n_items, "positives": len(known), "anchors": n_anchors}
        row |= {"build_seconds": time.perf_counter() - start, "bytes": known.nbytes}
        row["bytes_per_positive"] = (known.nbytes - known.indptr.nbytes) / len(known)
        del anchors, items
        weights = 1.0 / np.arange(1, n_items + 1) ** 0.75
        batches = np.random.default_rng(1).integers(0, n_anchors, (16, BATCH))
        for name, of_pool in {"uniform": None, "weighted": weights}.items():
            for distinct in (False, True):
                pool = ns.pools.Everything(known, of_pool, distinct=distinct)
                best, _ = alternate({"draw": every_batch(pool, batches, K)}, options.repeats)
                row[f"{name} distinct" if distinct else name] = 1e9 * best["draw"]["seconds"] / (batches.size * K)
        rows.append(row)
    return rows


def hops(options: Options) -> Row:
    """Microseconds per row of pools over a graph."""
    data = readers.arrays(options.data, "ca-astroph", "graph.npz")  # type: ignore[arg-type]
    graph = ns.Positives.from_edges(data["edges"][:, 0], data["edges"][:, 1], int(data["n_nodes"]))
    anchors = ns.rng_for(0).integers(0, int(data["n_nodes"]), options.size(ROWS, 16))
    pools = {
        "KHop(2)": ns.pools.KHop(graph, hops=2),
        "KHop(3)": ns.pools.KHop(graph, hops=3),
        "Walks(length=2)": ns.pools.Walks(graph, length=2),
        "PageRank(2000, 5000), tolerance 1e-6": ns.pools.PageRank(graph, (2000, 5000)),
        "PageRank(2000, 5000), tolerance 1e-5": ns.pools.PageRank(graph, (2000, 5000), tolerance=1e-5),
    }
    rows, _ = alternate(
        {name: every_batch(pool, anchors[None], K, filled) for name, pool in pools.items()}, options.repeats
    )
    asked = len(anchors) * K
    return {
        name: {
            "microseconds_per_row": 1e6 * row["seconds"] / len(anchors),
            "filled": row.get("negatives", 0),
            "asked": asked,
        }
        for name, row in rows.items()
    }


def leaks(options: Options) -> Row:
    """Draws, and known positives among them, by pool."""
    total = options.size(100_000_000, 100_000)
    known, _ = readers.yelp(options.data)  # type: ignore[arg-type]
    users, items = (ids.astype(np.int64) for ids in known.pairs())
    codes = np.sort(users * known.n_items + items)
    weights = ns.pools.popularity(known, 0.75)
    found: Row = {}
    for name, of_pool in {"uniform": None, "popularity": weights}.items():
        for distinct in (False, True):
            pool = ns.pools.Everything(known, of_pool, distinct=distinct)

            def pairs(step: int, pool: Any = pool) -> NDArray[np.int64]:
                batch = ns.rng_for(1, step).integers(0, known.n_anchors, LEAK_BATCH)
                ids = pool.draw(ns.Query(batch), LEAK_K, rng=ns.rng_for(0, step)).ids
                return (batch[:, None] * known.n_items + ids).ravel()

            found[f"yelp2018 {name}{' distinct' if distinct else ''}"] = counted(codes, pairs, total // 4)
    splits = readers.arrays(options.data, "fb15k-237", "triples.npz")  # type: ignore[arg-type]
    train, every = splits["train"], np.concatenate([splits[part] for part in ("train", "valid", "test")])
    base = int(every.max()) + 1
    triple_codes = np.sort((every[:, 0] * base + every[:, 1]) * base + every[:, 2])
    kinds: dict[str, Row] = {"corruption": {}, "bernoulli": {"choice": "bernoulli"}}
    kinds["typed"] = {"domains": "observed", "ranges": "observed"}
    for name, settings in kinds.items():
        corruptions = ns.pools.Corruption(train, [splits["valid"], splits["test"]], **settings)

        def triples(step: int, pool: Any = corruptions) -> NDArray[np.int64]:
            query = ns.Query(train[ns.rng_for(1, step).integers(0, len(train), LEAK_BATCH)])
            made = pool.corrupted(query, pool.draw(query, LEAK_K, rng=ns.rng_for(0, step)))
            made = made[made[..., 0] >= 0]
            return (made[:, 0] * base + made[:, 1]) * base + made[:, 2]

        found[f"fb15k-237 {name}"] = counted(triple_codes, triples, total // 3)
    return found


def counted(codes: NDArray[np.int64], draw: Callable[[int], NDArray[np.int64]], total: int) -> Row:
    """How many of at least `total` draws are known."""
    made = bad = step = 0
    start = time.perf_counter()
    while made < total:
        drawn = draw(step)
        bad += in_sorted(codes, drawn)
        made += len(drawn)
        step += 1
    return {"draws": made, "leaks": bad, "seconds": time.perf_counter() - start}


RESULTS = {
    "sampling": {f"threads_{n}": partial(sampling, n) for n in (1, 2)},
    "growth": {
        "k": K,
        "batch": BATCH,
        "by_items": partial(growth, tuple((10**power, 1_000_000) for power in (4, 5, 6, 7))),
        "by_positives": partial(growth, tuple((100_000, 10**power) for power in (5, 6, 7, 8))),
    },
    "hops": {"rows": ROWS, "k": K, "pools": hops},
    "no_leaks": {"k": LEAK_K, "cases": leaks},
}

if __name__ == "__main__":
    command(__doc__, RESULTS)
