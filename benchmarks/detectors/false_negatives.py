"""How many unlabelled positives each rule misses, for several encoders, and whether the estimates are right.

    python -m benchmarks.detectors.false_negatives [--seeds 20] [--out FILE]

The data is a planted world: each of 1,000 anchors has 8 true items among 3,000, one of them labelled, so 7 are known
false negatives. Five encoders, named by the mean score of positives and of all pairs, range from wide scores around 0
to narrow scores near 1. Every rule selects the top ten candidates that it does not flag:

    naive                     flags nothing
    95 % of the positive      flags scores above s - 0.05 |s|, s the score of the anchor's labelled positive
    calibrated                flags scores from the r-th smallest of the labelled positives, r = floor(alpha (n + 1))
    calibrated, by anchor     the same, with scores standardised by anchor

The second study compares the estimates that need no labels with the truth: the interval of `hidden_positives` and the
bounds of `unlabelled_share` and `false_negative_rate` must cover the truth at least as often as they state. In these
worlds true negatives score as high as positives, so the bounds are wide. The third study is the hardest test: normal
scores so well separated that the bound is almost the truth.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import naysay as ns
from benchmarks.harness import write
from naysay.detectors import hidden_positives
from naysay.detectors.calibrated import Calibrated, rank_of
from naysay.detectors.rate import false_negative_rate, unlabelled_share
from naysay.testing import World, planted_world
from naysay.testing.worlds import ENCODERS

ALPHA, K = 0.05, 10
ANCHORS, ITEMS, TRUE = 1000, 3000, 8
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


class Seen:
    """A world, its scores and its truth as matrices, (anchors, items)."""

    def __init__(self, world: World) -> None:
        """Score everything."""
        self.world = world
        self.scores = (world.anchor_vectors @ world.item_vectors.T).astype(np.float64)
        self.known = np.zeros(self.scores.shape, bool)
        self.known[world.known.pairs()] = True
        self.false = np.zeros(self.scores.shape, bool)
        self.false[world.truth.pairs()] = True
        self.false &= ~self.known
        self.anchors = np.arange(len(self.scores))
        candidates = np.where(self.known, np.nan, self.scores)
        self.mean, self.deviation = np.nanmean(candidates, axis=1), np.nanstd(candidates, axis=1)

    @property
    def positives(self) -> Floats:
        """(anchors,) the score of each anchor's first labelled positive."""
        return np.asarray(self.scores[self.anchors, self.known.argmax(axis=1)])


def unsuspected(seen: Seen, rule: str) -> Flags:
    """(anchors, items) the candidates that a rule does not flag."""
    positives = seen.positives
    suspected = np.zeros(seen.scores.shape, bool)
    if rule == "95 % of the positive":
        suspected = seen.scores > (positives - 0.05 * np.abs(positives))[:, None]
    elif rule == "calibrated":
        suspected = Calibrated(ALPHA).fit(positives, seen.anchors).flag(seen.scores)
    elif rule == "calibrated, by anchor":
        judge = Calibrated(ALPHA, standardise=True)
        judge.fit(positives, seen.anchors, background=(seen.mean, seen.deviation))
        suspected = judge.flag(seen.scores, seen.anchors)
    return ~suspected & ~seen.known


RULES = ("naive", "95 % of the positive", "calibrated", "calibrated, by anchor")


def hardest(scores: Floats, left: Flags, k: int = K) -> Flags:
    """(anchors, items) the top k of those."""
    shown = np.where(left, scores, -np.inf)
    chosen = np.argpartition(-shown, k, axis=1)[:, :k]
    found = np.zeros(left.shape, bool)
    np.put_along_axis(found, chosen, True, axis=1)
    return found & left


def measured(seen: Seen, rule: str) -> dict[str, float]:
    """What a rule does in one world."""
    left = unsuspected(seen, rule)
    taken = hardest(seen.scores, left)
    return {
        "let_through_percent": 100 * left[seen.false].mean(),
        "false_of_taken_percent": 100 * seen.false[taken].mean(),
        "mean_score_taken": seen.scores[taken].mean(),
        "filled_percent": 100 * taken.sum() / (K * len(taken)),
    }


def rules(seeds: int) -> list[dict[str, Any]]:
    """All rules on all encoders: means over seeds, and the standard error of the miss rate."""
    found = []
    for name, encoder in ENCODERS.items():
        worlds = [_world(encoder, seed) for seed in range(seeds)]
        row: dict[str, Any] = {"encoder": name, "settings": dict(encoder), "seeds": seeds}
        row["positive_mean"] = _rounded([seen.scores[seen.false | seen.known].mean() for seen in worlds])
        row["all_mean"] = _rounded([seen.scores.mean() for seen in worlds])
        row["rules"] = {}
        for rule in RULES:
            runs = [measured(seen, rule) for seen in worlds]
            means = {key: _rounded([run[key] for run in runs]) for key in runs[0]}
            let = np.array([run["let_through_percent"] for run in runs])
            means["let_through_error"] = round(float(let.std(ddof=1) / np.sqrt(seeds)), 3)
            row["rules"][rule] = means
            print(f"{name:12s} {rule:24s}", means, flush=True)
        row["few_positives"] = few(worlds)
        print(f"{name:12s} few positives", row["few_positives"], flush=True)
        found.append(row)
    return found


def few(worlds: list[Seen], n: int = 59, times: int = 200) -> dict[str, Any]:
    """Calibration with only n positives, repeated: the promise is about the mean, r / (n + 1) = 5 % here."""
    let = []
    for seed, seen in enumerate(worlds):
        rng = np.random.default_rng(seed)
        for _ in range(times):
            order = rng.permutation(len(seen.anchors))
            line = Calibrated(ALPHA).fit(seen.positives[order[:n]]).high
            rest = order[n:]
            let.append(100 * float((seen.scores[rest][seen.false[rest]] < line).mean()))
    by_world = np.array(let).reshape(len(worlds), times).mean(axis=1)
    error = float(by_world.std(ddof=1) / np.sqrt(len(worlds)))
    tenths = np.quantile(let, [0.1, 0.9]).round(2).tolist()
    promised = round(100 * rank_of(ALPHA, n) / (n + 1), 3)
    return {
        "positives": n,
        "promised_percent": promised,
        "let_through_percent": round(float(by_world.mean()), 3),
        "let_through_error": round(error, 3),
        "let_through_10_90": tenths,
    }


def estimates(seeds: int) -> list[dict[str, Any]]:
    """Estimates without labels against the truth, at 95 %; with 300 anchors, and 3 of 10 true items labelled."""
    found = []
    for name, encoder in ENCODERS.items():
        rows = [_estimated(encoder, seed) for seed in range(seeds)]
        row: dict[str, Any] = {"encoder": name, "seeds": seeds}
        for part in ("hidden", "unlabelled", "below_line", "taken"):
            truth, estimate, low, high = np.array([one[part] for one in rows]).T
            row[part] = {
                "covered_percent": round(100 * float(((low <= truth) & (truth <= high)).mean()), 1),
                "truth_percent": _rounded(100 * truth),
                "estimate_percent": _rounded(100 * estimate),
                "low_percent": _rounded(100 * low),
                "high_percent": _rounded(100 * high),
            }
            print(f"{name:12s} {part:12s}", row[part], flush=True)
        found.append(row)
    return found


def _estimated(encoder: Any, seed: int) -> dict[str, tuple[float, float, float, float]]:
    """(truth, estimate, low, high) of each estimate in one world."""
    world = planted_world(300, 1000, per_anchor=10, known_share=0.3, seed=1000 + seed, **encoder)
    split = world.known.split(0.4, rng=ns.rng_for(seed))  # one or two of three
    seen = Seen(World(split.kept, world.truth, world.anchor_vectors, world.item_vectors))
    judge = Calibrated(ALPHA).fit(seen.positives, seen.anchors)
    query = ns.Query(seen.anchors)
    hidden = hidden_positives(judge, query, split.hidden, rng=ns.rng_for(seed, 1), score=world.scores)
    suspected = judge.flag(seen.scores)
    never = seen.false.copy()  # positives that are never labelled
    never[split.hidden.pairs()] = False
    held = split.hidden.pairs()
    places = np.unique(held[0], return_index=True)[1]
    positives, filled = seen.scores[held][places], ~seen.known
    args = (seen.scores, positives)
    prior = unlabelled_share(*args, mask=filled)
    below = false_negative_rate(*args, judge.high, mask=filled)
    left = filled & ~suspected
    taken = hardest(seen.scores, left)
    lowest = np.where(taken, seen.scores, np.inf).min(axis=1)[held[0][places]]
    passed = (positives < judge.high) & (positives >= lowest)
    top = false_negative_rate(*args, taken, kept_positives=passed, mask=filled)
    truth = (suspected & never).sum(axis=1) / never.sum(axis=1)
    return {
        "hidden": (float(truth.mean()), hidden.estimate, hidden.low, hidden.high),
        "unlabelled": (float(seen.false[filled].mean()), prior.estimate, prior.low, prior.high),
        "below_line": (float(seen.false[left].mean()), below.estimate, below.low, below.high),
        "taken": (float(seen.false[taken].mean()), top.estimate, top.low, top.high),
    }


def mixtures(seeds: int) -> list[dict[str, Any]]:
    """The bound at the calibrated threshold where positives and negatives are well separated."""
    found = []
    for anchors, width, each, apart, by_anchor, known in MIXTURES:
        rows = []
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            level = by_anchor * rng.standard_normal(anchors)
            false = np.arange(width) < np.minimum(rng.poisson(each, anchors), width)[:, None]
            scores = rng.standard_normal((anchors, width)) + apart * false + level[:, None]
            positives = rng.standard_normal(known) + apart + level[:known]
            line = Calibrated(ALPHA).fit(positives).high
            said = false_negative_rate(scores, positives, line)
            rows.append((false[scores < line].mean(), said.estimate, said.high))
        truth, estimate, high = np.array(rows).T
        row = {
            "anchors": anchors,
            "candidates": width,
            "false_negatives_each": each,
            "deviations_apart": apart,
            "deviation_by_anchor": by_anchor,
            "positives": known,
            "seeds": seeds,
            "covered_percent": round(100 * float((truth <= high).mean()), 1),
            "truth_percent": _rounded(100 * truth),
            "estimate_percent": _rounded(100 * estimate),
            "high_percent": _rounded(100 * high),
        }
        print("mixture", row, flush=True)
        found.append(row)
    return found


# anchors, candidates and false negatives of each, deviations between positives and negatives, the deviation of an
# anchor's own level, and labelled positives
MIXTURES = (
    (300, 50, 1.0, 6.0, 0.0, 300),
    (300, 50, 1.0, 6.0, 1.0, 300),
    (300, 50, 1.0, 3.0, 0.0, 300),
    (300, 50, 1.0, 6.0, 0.0, 50),
    (2000, 1, 0.1, 6.0, 0.0, 500),
    (40, 50, 1.0, 6.0, 0.0, 20),
)


def _world(encoder: Any, seed: int) -> Seen:
    return Seen(planted_world(ANCHORS, ITEMS, per_anchor=TRUE, known_share=1 / TRUE, seed=seed, **encoder))


def _rounded(values: Any) -> float:
    """The mean, to four places."""
    return round(float(np.mean(values)), 4)


def main() -> None:
    """Run the studies and write results/false_negatives.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20, help="worlds for each encoder")
    parser.add_argument("--out", type=Path, help="where to write; results/false_negatives.json by default")
    args = parser.parse_args()
    world = {"anchors": ANCHORS, "items": ITEMS, "true_items": TRUE, "labelled": 1, "k": K, "alpha": ALPHA}
    studies = {
        "rules": rules(args.seeds),
        "estimates": estimates(5 * args.seeds),
        "mixtures": mixtures(20 * args.seeds),
    }
    write("false_negatives", {"world": world, **studies}, args.out)


if __name__ == "__main__":
    main()
