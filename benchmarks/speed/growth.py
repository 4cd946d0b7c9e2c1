"""How draws and memory grow: items 1e4 to 1e7, positives 1e5 to 1e8. A table, a plot and JSON.

python -m benchmarks.speed.growth [--largest 1e8] [--repeats 5]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import vl_convert

import naysay as ns
from benchmarks.harness import RESULTS, write
from benchmarks.speed.worlds import uniform_pairs

K, BATCH = 16, 4096


def seconds_per_draw(pool: ns.pools.Everything, n_anchors: int, repeats: int) -> float:
    """The best of `repeats` rounds of 16 batches."""
    batches = np.random.default_rng(1).integers(0, n_anchors, (16, BATCH))
    best = float("inf")
    for _ in range(repeats + 1):  # the first round touches cold memory
        start = time.perf_counter()
        for step, batch in enumerate(batches):
            pool.draw(ns.Query(batch), K, rng=ns.rng_for(0, step))
        best = min(best, time.perf_counter() - start)
    return best / (batches.size * K)


def row(n_items: int, n_pairs: int, repeats: int) -> dict[str, Any]:
    """One size: about 40 positives per anchor; build time, bytes, and nanoseconds per draw for four pools."""
    n_anchors = max(1000, n_pairs // 40)
    anchors, items, _, _ = uniform_pairs(n_anchors, n_items, n_pairs)
    start = time.perf_counter()
    known = ns.Positives.from_pairs(anchors, items, n_anchors, n_items)
    build = time.perf_counter() - start
    del anchors, items
    weights = 1.0 / np.arange(1, n_items + 1) ** 0.75
    found: dict[str, Any] = {
        "items": n_items,
        "positives": len(known),
        "anchors": n_anchors,
        "build_seconds": build,
        "bytes_per_positive": (known.nbytes - known.indptr.nbytes) / len(known),
        "bytes": known.nbytes,
    }
    for name, settings in {
        "uniform": {"distinct": False},
        "uniform distinct": {},
        "weighted": {"weights": weights, "distinct": False},
        "weighted distinct": {"weights": weights},
    }.items():
        found[name] = 1e9 * seconds_per_draw(ns.pools.Everything(known, **settings), n_anchors, repeats)
    return found


def chart(rows: list[dict[str, Any]], axis: str, title: str, target: Path) -> None:
    """Nanoseconds per draw against size, both on a log scale."""
    ways = ("uniform", "uniform distinct", "weighted", "weighted distinct")
    values = [{"size": r[axis], "nanoseconds": r[way], "draws": way} for r in rows for way in ways]
    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": title,
        "width": 420,
        "height": 260,
        "background": "white",
        "data": {"values": values},
        "mark": {"type": "line", "point": True},
        "encoding": {
            "x": {"field": "size", "type": "quantitative", "scale": {"type": "log"}, "title": axis},
            "y": {"field": "nanoseconds", "type": "quantitative", "title": "ns a draw", "scale": {"zero": True}},
            "color": {"field": "draws", "type": "nominal", "title": None, "sort": list(ways)},
        },
    }
    target.write_text(vl_convert.vegalite_to_svg(spec))


def main() -> None:
    """Run both series and write results/growth.json and two plots."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", type=float, default=1e8, help="the largest number of positives")
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    ns.pools.Everything(ns.Positives.from_pairs([0], [0], n_items=9)).draw(ns.Query([0]), 1, rng=ns.rng_for(0))
    by_items = [row(10**power, 1_000_000, args.repeats) for power in (4, 5, 6, 7)]
    sizes = [10**power for power in (5, 6, 7, 8) if 10**power <= args.largest]
    by_positives = [row(100_000, size, args.repeats) for size in sizes]
    for found in by_items + by_positives:
        print({name: round(value, 2) if isinstance(value, float) else value for name, value in found.items()})
    chart(by_items, "items", "A draw against the number of items", RESULTS / "growth-items.svg")
    chart(by_positives, "positives", "A draw against the number of known pairs", RESULTS / "growth-positives.svg")
    write("growth", {"k": K, "batch": BATCH, "by_items": by_items, "by_positives": by_positives})


if __name__ == "__main__":
    main()
