"""Scores a sampler in a fixed recipe: `python -m benchmarks.board.sample MODULE:FUNCTION --data DIR [--json FILE]`.

FUNCTION(train, score) makes the sampler. `train` are the training pairs (`naysay.Positives`); `score(anchors, ids)` are
the scores of the model as it is now. A sampler is any object with `sample(query, k, *, rng)` that returns `.ids` and
`.mask`; if it has `observe(query, negatives)`, that is called after every step.

The task: which tags belong to a package of Debian? A factorisation model is trained by InfoNCE with 8 negatives a pair.
Quality is nDCG@10 of held-out tags among all that a package is not known to have, in per cent: of all pairs, and of
three bands of tags (head, middle, tail) that have a third of the training pairs each. It is measured after 1,000 steps,
and after as many processor seconds as uniform negatives took for these, in the same process.
"""

from __future__ import annotations

import argparse
import importlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import naysay as ns
from benchmarks import readers
from benchmarks.board.score import SPLITS, TOP, VERSION, summary

STEPS, BATCH, K, DIM, LR = 1000, 512, 8, 32, 1e-2
HELD_OUT = 0.2  # of the pairs
MOST_SECONDS = 20  # times what uniform negatives take: then a run ends before its last step
BANDS = ("head", "middle", "tail")
Factory = Callable[[ns.Positives, Callable[[Tensor, Tensor], Tensor]], Any]


@dataclass(frozen=True, eq=False)
class Split:
    """Training and test pairs of packages and tags, and the band of each tag."""

    train: ns.Positives
    test: ns.Positives
    band: Any


def split_of(folder: Path, number: int) -> Split:
    """Pairs of packages with at least two tags, split at random."""
    rows = [json.loads(line) for line in readers.lines(folder / "debian-desc/packages.jsonl.xz")]
    tagged = [row["tags"] for row in rows if len(row["tags"]) > 1]
    names, tags = np.unique([tag for row in tagged for tag in row], return_inverse=True)
    packages = np.repeat(np.arange(len(tagged)), [len(row) for row in tagged])
    is_test = np.random.default_rng([VERSION, number]).random(len(tags)) < HELD_OUT
    train, test = (
        ns.Positives.from_pairs(packages[part], tags[part], len(tagged), len(names)) for part in (~is_test, is_test)
    )
    popularity = np.bincount(tags[~is_test], minlength=len(names))
    order = np.argsort(-popularity, kind="stable")
    before = np.cumsum(popularity[order]) - popularity[order]
    band = np.empty(len(names), np.int64)
    band[order] = len(BANDS) * before // popularity.sum()
    return Split(train, test, band)


class Model:
    """A vector for each package and each tag, and a bias for each tag."""

    def __init__(self, train: ns.Positives) -> None:
        generator = torch.Generator().manual_seed(0)
        self.anchors, self.items = (
            (0.1 * torch.randn(n, DIM, generator=generator)).requires_grad_() for n in (train.n_anchors, train.n_items)
        )
        self.bias = torch.zeros(train.n_items, requires_grad=True)
        self.optimiser = torch.optim.Adam([self.anchors, self.items, self.bias], lr=LR)

    def score(self, anchors: Tensor, ids: Tensor) -> Tensor:
        """(B, n) of anchors (B,) and ids (B, n)."""
        return torch.einsum("bd,bnd->bn", self.anchors[anchors], self.items[ids]) + self.bias[ids]

    def step(self, sampler: Any, anchors: Tensor, items: Tensor, number: int, seed: int) -> None:
        """Draw, learn, and let the sampler learn."""
        query = ns.Query(anchors, positives=items, step=number)
        negatives = sampler.sample(query, K, rng=ns.rng_for(seed, number))
        positive = self.score(anchors, items[:, None])[:, 0]
        ids, mask = torch.as_tensor(negatives.ids), torch.as_tensor(negatives.mask)
        loss = ns.losses.info_nce(positive, self.score(anchors, ids.clamp(min=0)), mask=mask).mean()
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        if hasattr(sampler, "observe"):
            sampler.observe(query, negatives)


def quality(model: Model, split: Split) -> dict[str, float]:
    """nDCG@10 of all held-out tags, and of those of each band."""
    with torch.no_grad():
        scores = model.anchors @ model.items.T + model.bias
    rows, items = (torch.from_numpy(ids.astype(np.int64)) for ids in split.train.pairs())
    scores[rows, items] = -torch.inf
    best = scores.topk(TOP, dim=1).indices.numpy()
    anchors, tags = (ids.astype(np.int64) for ids in split.test.pairs())
    gains = 1 / np.log2(np.arange(TOP) + 2)
    measures = {}
    for name, chosen in [("all", tags >= 0), *((band, split.band[tags] == i) for i, band in enumerate(BANDS))]:
        relevant = ns.Positives.from_pairs(anchors[chosen], tags[chosen], *scores.shape)
        counts = relevant.count()
        hits = relevant.contains(np.repeat(np.arange(len(best)), TOP), best.ravel()).reshape(best.shape)
        ideal = np.cumsum(gains)[np.clip(counts, 1, TOP) - 1]
        measures[name] = 100 * float(((hits * gains).sum(axis=1) / ideal)[counts > 0].mean())
    return measures


def warm_up(make: Factory, split: Split) -> None:
    """Two steps of a model that is thrown away, so that no budget of time pays for compiling."""
    model = Model(split.train)
    sampler = sampler_of(make, split, model.score)
    rows, items = (torch.from_numpy(ids[:BATCH].astype(np.int64)) for ids in split.train.pairs())
    for number in range(2):
        model.step(sampler, rows, items, number, 0)


def run(make: Factory, split: Split, seed: int, seconds: float | None) -> dict[str, Any]:
    """Train with one sampler: quality at the last step and, if given, after so many processor seconds."""
    model = Model(split.train)
    sampler = sampler_of(make, split, model.score)
    rows, items = (torch.from_numpy(ids.astype(np.int64)) for ids in split.train.pairs())
    order = np.random.default_rng(seed)
    spent, step = 0.0, 0
    results: dict[str, Any] = {}
    while "steps" not in results or (seconds is not None and "seconds" not in results):
        chosen = torch.from_numpy(order.integers(0, len(rows), BATCH))
        start = time.process_time()
        model.step(sampler, rows[chosen], items[chosen], step, seed)
        spent += time.process_time() - start
        step += 1
        if seconds is not None and "seconds" not in results and spent >= seconds:
            results["seconds"] = quality(model, split)
        if step == STEPS:
            results["steps"] = quality(model, split)
            results["spent"] = spent
        if seconds is not None and spent > MOST_SECONDS * seconds:
            break
    return results


def uniform(train: ns.Positives, _score: Any) -> Any:
    """The control whose time is the budget."""
    return ns.samplers.Static(ns.pools.Everything(train))


def popular(train: ns.Positives, _score: Any) -> Any:
    """Tags by their number of training pairs to the power .75."""
    weights = np.bincount(train.pairs()[1].astype(np.int64), minlength=train.n_items) ** 0.75
    return ns.samplers.Static(ns.pools.Everything(train, weights=weights))


def dynamic(train: ns.Positives, score: Any) -> Any:
    """The highest scores of 32 candidates."""
    return ns.samplers.Dynamic(ns.pools.Everything(train), score, 32)


def cached(train: ns.Positives, score: Any) -> Any:
    """A cache of 16 for each package, renewed with 16 others by their scores after every step."""
    return ns.samplers.Cached(ns.pools.Everything(train), score, size=16, fresh=16)


def softmax(train: ns.Positives, score: Any) -> Any:
    """Of 32 candidates, a draw by the softmax of their scores."""
    return ns.samplers.Dynamic(ns.pools.Everything(train), score, 32, temperature=1.0)


def oracle(train: ns.Positives, score: Any, test: ns.Positives) -> Any:
    """As `dynamic`, but without the held-out tags: it reads the truth, so no submission can be it."""
    return ns.samplers.Dynamic(ns.pools.Everything(train.union(test)), score, 32)


# What is in the table, by its name there.
CONTROLS: dict[str, Any] = {
    "uniform": uniform,
    "popularity to the power .75": popular,
    "dynamic": dynamic,
    "dynamic, softmax": softmax,
    "dynamic, oracle": oracle,
    "cached": cached,
}


def sampler_of(make: Any, split: Split, score: Any) -> Any:
    """The sampler of a submission, or of a control; the oracle gets the truth, too."""
    return make(split.train, score, split.test) if make is oracle else make(split.train, score)


def scored(make: Factory, folder: Path) -> dict[str, Any]:
    """{measure: mean and interval over the splits}; uniform runs before it on every split, for the budget of time."""
    values: dict[str, list[float]] = {}
    torch.set_num_threads(1)
    for number in range(SPLITS):
        split = split_of(folder, number)
        for one in (uniform, make):
            warm_up(one, split)
        budget = run(uniform, split, number, None)["spent"]
        results = run(make, split, number, budget)
        for when in ("steps", "seconds"):
            for name, value in results.get(when, {}).items():
                values.setdefault(f"{name}, equal {when}", []).append(value)
        values.setdefault("times the cost of uniform", []).append(results.get("spent", float("nan")) / budget)
    return {name: summary(found) for name, found in values.items()}


def main() -> None:
    """Score, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sampler", metavar="MODULE:FUNCTION")
    parser.add_argument("--data", type=Path, required=True, help="the folder of benchmarks.data")
    parser.add_argument("--json", type=Path, help="write the measures to this file")
    args = parser.parse_args()
    module, _, function = args.sampler.partition(":")
    table = scored(getattr(importlib.import_module(module), function), args.data)
    for name, cell in table.items():
        print(f"{name:28s} {cell['mean']:.2f} +- {cell['half']:.2f}")
    if args.json:
        args.json.write_text(json.dumps({"version": VERSION, "track": "sample", **table}, indent=1) + "\n")


if __name__ == "__main__":
    main()
