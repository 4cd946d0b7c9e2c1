"""Do the intervals of the library hold the truth? Shares of false negatives in planted worlds and in real data.

    python -m benchmarks.detectors.coverage --data FOLDER [--sizes 50 500 5000] [--only WORLD ...] [--vectors FILE]
        [--cells FILE] [--out FILE]

FOLDER   a folder with scifact/ and scifact-minilm/, cranfield/, debian-desc/ and codex-s/; a world without its data is
         left out

**Planted.** Each anchor has positives around a centre of its own, near the centres of other anchors of its topic.
`even`: three positives each; `uneven`: one, or a number up to 21 drawn from a power law. `random`: one of them is
labelled by chance; `easiest`: the one with the highest score. `strong`, `medium`, `weak`: the noise of the encoder.
Sizes are numbers of anchors.

**Real.** debian: one package of each source, its long description against those of all packages, the label is a random
package of the source or the package's own (`own`). scifact: half of the documents and the queries about them, the
label is one relevant document. cranfield: the same with all documents. codex-s: tails of (head, relation); validation
and test triples are the hidden positives, and vectors are singular vectors of the training triples: the encoder saw the
labels.

**Intervals** (95 %). mine: the share of false negatives among the nearest 10, among what `judge="auto"` returns, and
among what it returns after a review of 100 pairs. audit: the share of a set of the nearest 10.
unlabelled_share, false_negative_rate: upper bounds for 2,000 random documents, and for those below the lowest 5 % of
positives. hidden_positives: the share of unlabelled positives above that threshold, from a tenth of the known ones (of
half of an anchor's positives).

There are 12 worlds of a cell with 50 anchors, 5 with 500, 3 with 5,000, and 4 of real data: about 12 minutes of a core.

Each finished world is one line of FILE, and is not run again; the JSON file is made of these lines.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import naysay as ns
from benchmarks.detectors.coverage_worlds import World, planted, real_worlds
from benchmarks.harness import RESULTS, write
from benchmarks.hidden_positives.hardness import rounded
from naysay.detectors import MaxScore, Posterior, RateEstimate, false_negative_rate, hidden_positives
from naysay.detectors import unlabelled_share as prior

K, SAMPLE = 10, 2000
BINS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 0.9, 1.0)
KINDS, LABELS, ENCODERS = ("even", "uneven"), ("random", "easiest"), ("strong", "medium", "weak")
REPEATS = {50: 12, 500: 5, 5000: 3}
SEEDS = 4  # of real data
REVIEWED = 100  # pairs
MEANS = ("truth", "estimate", "low", "high")
METHODS = ("mine, nearest", "mine, returned", "mine, reviewed", "audit", "unlabelled_share")
METHODS += ("false_negative_rate", "hidden_positives")


@dataclass(frozen=True)
class Task:
    """One world to be measured: its name, the cell that it counts for, and how it is made."""

    name: str
    cell: str
    make: Callable[[], World]


def tasks(sizes: Sequence[int], data: Path | None, vectors: Path | None) -> Iterator[Task]:
    """All worlds, small ones first."""
    for size in sizes:
        if size == 500 and data is not None:
            for cell, maker in real_worlds(data, vectors).items():
                yield from (Task(f"{cell}, seed {s}", cell, lambda m=maker, s=s: m(s)) for s in range(SEEDS))
        for kind in KINDS:
            for labels in LABELS:
                for encoder in ENCODERS:
                    cell = f"{kind}, {labels}, {encoder}, {size} anchors"
                    for seed in range(REPEATS.get(size, 5)):
                        made = (size, kind, labels, encoder, seed)
                        yield Task(f"{cell}, seed {seed}", cell, lambda made=made: planted(*made))


def measured(world: World, seed: int) -> dict[str, Any]:
    """Every interval of one world, with its truth."""
    found: dict[str, Any] = {}
    known = ns.Positives.from_pairs(np.arange(len(world.labels)), world.labels, len(world.labels), len(world.items))
    mined = ns.mine(world.queries, world.items, known, K, judge="auto", seed=seed)
    nearest = ns.mine(world.queries, world.items, known, K, judge=None, seed=seed)
    near = _false(world, nearest.ids)
    judge = mined.judge
    if isinstance(judge, Posterior):
        found["mine, nearest"] = _held(judge.summary.before, near)
        found["mine, returned"] = _held(judge.summary.after, _false(world, mined.ids))
        check = judge.summary.check
        found["verdict"] = "" if check is None else check.verdict
        found["bins"] = _calibration(world, mined.candidates.ids, mined.candidates.suspicion)
        pairs = mined.pairs_to_review(REVIEWED)
        truth = world.is_true(pairs.anchors, pairs.items[:, None])[:, 0]
        again = ns.mine(
            *(world.queries, world.items, known, K), seed=seed, reviewed=(pairs.anchors, pairs.items, truth)
        )
        if isinstance(again.judge, Posterior):
            found["mine, reviewed"] = _held(again.judge.summary.after, _false(world, again.ids))
    else:
        found["rule"] = mined.rule
    audited = ns.audit(nearest, query_vectors=world.queries, corpus_vectors=world.items, seed=seed)
    found["audit"] = _held(audited.false_share, near)
    return found | _rates(world, seed) | _hidden(world, seed)


def _rates(world: World, seed: int) -> dict[str, Any]:
    """The bounds from scores of random documents."""
    rng = ns.rng_for(seed, 7)
    rows = np.sort(rng.permutation(len(world.labels))[:500])
    items = np.sort(rng.permutation(len(world.items))[:SAMPLE])
    scores = world.queries[rows] @ world.items[items].T
    candidate = items != world.labels[rows][:, None]
    true = world.is_true(rows, np.tile(items, (len(rows), 1))) & candidate
    own = (world.queries * world.items[world.labels]).sum(axis=1)
    limit = float(np.quantile(own, 0.05))
    kept = (scores < limit) & candidate
    made = {"unlabelled_share": _held(prior(scores, own, mask=candidate), true[candidate].mean())}
    if kept.any():
        rate = false_negative_rate(scores, own, limit, mask=candidate)
        made["false_negative_rate"] = _held(rate, true[kept].mean())
    return made


def _hidden(world: World, seed: int) -> dict[str, Any]:
    """The share of unlabelled positives that a threshold flags, from hidden ones."""
    anchors, items = world.true
    own = (world.queries[anchors] * world.items[items]).sum(axis=1)
    labelled = ns.rng_for(seed, 8).random(len(anchors)) < 0.5
    if world.biased:  # the better half of each anchor
        order = np.lexsort((-own, anchors))
        first = np.r_[0, np.flatnonzero(np.diff(anchors[order])) + 1]
        places = np.arange(len(order)) - np.repeat(first, np.diff(np.r_[first, len(order)]))
        labelled[order] = places < (np.bincount(anchors)[anchors[order]] + 1) // 2
    if labelled.all() or not labelled.any():
        return {}
    sizes = (len(world.labels), len(world.items))
    split = ns.Positives.from_pairs(anchors[labelled], items[labelled], *sizes).split(0.1, rng=ns.rng_for(seed))
    limit = float(np.quantile(own[labelled], 0.05))
    if not len(split.hidden):
        return {}
    found = hidden_positives(
        *(MaxScore(limit), ns.Query(np.arange(sizes[0])), split.hidden),
        rng=ns.rng_for(seed, 9),
        score=lambda rows, ids: np.einsum("bd,bnd->bn", world.queries[rows], world.items[ids]),
    )
    return {"hidden_positives": _held(found, float((own[~labelled] >= limit).mean()))}


def _false(world: World, ids: NDArray[np.int64]) -> float:
    """The share of false negatives among ids (n, k), -1 empty."""
    rows = np.arange(len(ids))
    return float(world.is_true(rows, np.maximum(ids, 0))[ids >= 0].mean()) if (ids >= 0).any() else 0.0


def _held(share: RateEstimate | None, truth: float) -> dict[str, Any] | None:
    """An interval and whether it holds the truth."""
    if share is None or any("inconclusive" in note or "unknown" in note for note in share.notes):
        return None
    numbers = {"truth": truth, "estimate": share.estimate, "low": share.low, "high": share.high}
    held = share.low - 1e-9 <= truth <= share.high + 1e-9
    return {name: rounded(value, 5) for name, value in numbers.items()} | {"held": bool(held)}


def _calibration(world: World, ids: NDArray[np.int64], suspicion: Any) -> list[list[float]]:
    """[slots, sum of posteriors, false negatives] in each bin, of the nearest candidates."""
    ids, p = ids[:, : 2 * K], np.asarray(suspicion)[:, : 2 * K]
    filled = ids >= 0
    true = world.is_true(np.arange(len(ids)), np.maximum(ids, 0))
    places = np.clip(np.searchsorted(BINS, p, side="right") - 1, 0, len(BINS) - 2)
    inside = [(places == place) & filled for place in range(len(BINS) - 1)]
    return [[int(mask.sum()), rounded(float(p[mask].sum()), 3), int(true[mask].sum())] for mask in inside]


def gathered(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """The table of all cells."""
    cells: dict[str, Any] = {}
    for line in lines:
        cell = cells.setdefault(line["cell"], {"worlds": 0, "told": {}, "held": {}} | {name: {} for name in MEANS})
        cell["worlds"] += 1
        for method in METHODS:
            if line.get(method) is None:
                continue
            for name, value in (("told", 1), ("held", line[method]["held"])):
                cell[name][method] = cell[name].get(method, 0) + value
            for name in MEANS:
                cell[name].setdefault(method, []).append(line[method][name])
        if "bins" in line:
            total = np.array(cell.get("bins", np.zeros((len(BINS) - 1, 3)))) + np.array(line["bins"])
            cell["bins"] = [[int(slots), rounded(p, 3), int(true)] for slots, p, true in total.tolist()]
    for cell in cells.values():
        for name in MEANS:
            cell[name] = {method: rounded(float(np.mean(values)), 5) for method, values in cell[name].items()}
    return {"k": K, "bins": list(BINS), "repetitions": REPEATS, "seeds of real data": SEEDS, "cells": cells}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is not in the file of cells yet, and write results/coverage.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, metavar="FOLDER")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(REPEATS))
    parser.add_argument("--only", nargs="+", help="cells that contain one of these texts")
    parser.add_argument("--vectors", type=Path, help="an .npz file to keep the vectors of packages in")
    parser.add_argument("--cells", type=Path, default=RESULTS / "coverage.jsonl", help="finished worlds, one a line")
    parser.add_argument("--out", type=Path, help="where to write; results/coverage.json by default")
    args = parser.parse_args(arguments)
    lines = [json.loads(line) for line in args.cells.read_text().splitlines()] if args.cells.is_file() else []
    done = {line["name"] for line in lines}
    for task in tasks(args.sizes, args.data, args.vectors):
        if task.name in done or (args.only and not any(text in task.cell for text in args.only)):
            continue
        start, seed = time.process_time(), int(task.name.rsplit(" ", 1)[1])
        line = {"name": task.name, "cell": task.cell, **measured(task.make(), seed)}
        line["seconds"] = rounded(time.process_time() - start, 1)
        lines.append(line)
        args.cells.parent.mkdir(parents=True, exist_ok=True)
        with args.cells.open("a") as file:
            file.write(json.dumps(line) + "\n")
        told = {method: line[method]["held"] for method in METHODS if line.get(method)}
        print(f"{task.name}: {told}, {line['seconds']} s", file=sys.stderr, flush=True)
    write("coverage", gathered(lines), args.out)


if __name__ == "__main__":
    main()
