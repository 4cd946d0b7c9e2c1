"""Packages: false negatives are packages of the same source, or with the same tags.

The anchor is a package's short description, its positive the long one, and the candidates are the long ones of all
others. A package of the same source is a false negative by the first truth; one with the same tags by the second.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import naysay as ns
from benchmarks.hidden_positives.hardness import auc, rounded, share_of
from benchmarks.hidden_positives.readers import Floats, Ids, Packages, latent_vectors
from naysay.types import Detector

WIDTH, MINED, K, BLOCK, MANY_TAGS = 256, 100, 10, 256, 5
ALPHAS, ALPHAS_BY_ANCHOR = (0.05, 0.1, 0.3, 0.5), (0.05, 0.1, 0.3)
_SAMPLE, _RANDOM, _POINTS = 300_000, 64, 20_000


def chosen(data: Packages, n: int, rng: np.random.Generator) -> tuple[Ids, Ids]:
    """Two sets of n packages, all of different sources: to evaluate, and to fit thresholds to."""
    order = rng.permutation(len(data.source))
    first = order[np.sort(np.unique(data.source[order], return_index=True)[1])]
    n = min(n, len(first) // 2)
    return np.sort(first[:n]), np.sort(first[n : 2 * n])


def nearest(short: Floats, long: Floats, evaluated: Ids, n: int) -> tuple[Ids, Floats]:
    """(B, n) the nearest long descriptions of each short one but its own, and their scores, nearest first."""
    n = min(n, len(long) - 1)
    ids, scores = np.empty((len(evaluated), n), np.int64), np.empty((len(evaluated), n))
    for start in range(0, len(evaluated), BLOCK):
        rows = evaluated[start : start + BLOCK]
        block = short[rows] @ long.T
        block[np.arange(len(rows)), rows] = -np.inf
        best = np.argpartition(-block, n - 1, axis=1)[:, :n]
        order = np.take_along_axis(block, best, axis=1).argsort(axis=1)[:, ::-1]
        best = np.take_along_axis(best, order, axis=1)
        ids[start : start + BLOCK], scores[start : start + BLOCK] = best, np.take_along_axis(block, best, axis=1)
    return ids, scores


@dataclass(frozen=True, eq=False)
class Said:
    """A detector's suspicion, stored to be evaluated by each truth."""

    answer: Floats

    def suspicion(self, query: ns.Query, negatives: ns.Negatives) -> Floats:
        """The same again."""
        return self.answer


class Nobody:
    """A detector that flags nothing."""

    def suspicion(self, query: ns.Query, negatives: ns.Negatives) -> Floats:
        """0 everywhere."""
        return np.zeros(negatives.shape)


def backgrounds(short: Floats, long: Floats, rng: np.random.Generator) -> Floats:
    """(n, m) the scores of every short description with some random long ones."""
    found = np.empty((len(short), _RANDOM))
    for start in range(0, len(short), BLOCK):
        random = rng.integers(0, len(long), (len(short[start : start + BLOCK]), _RANDOM))
        found[start : start + BLOCK] = np.einsum("bd,bmd->bm", short[start : start + BLOCK], long[random])
    return found


def detectors(
    data: Packages, short: Floats, long: Floats, fitted: Ids, rng: np.random.Generator, say: Callable[[str], None]
) -> dict[str, Detector]:
    """All detectors. Thresholds are fitted to packages of other sources than the evaluated ones."""
    d: Any = ns.detectors
    background = backgrounds(short, long, rng)
    own = np.einsum("nd,nd->n", short, long)
    sample = rng.permutation(background.ravel())[:_SAMPLE]
    bands = d.choose_thresholds(sample)
    kinds = d.Mixture(bounds=(-1, 1), iterations=100)
    kinds.update(sample)
    groups = d.SoftClusters(min(256, len(long) // 4), lambda ids: long[ids])
    groups.update(long[rng.permutation(len(long))[:20_000]], rng=ns.rng_for(0))
    say("thresholds and clusters")
    texts = {f"duplicates by text, {threshold:g}": _texts(data, threshold) for threshold in (0.8, 0.3)}
    say("signatures of texts")
    thresholds = {f"calibrated, {alpha:g}": d.Calibrated(alpha).fit(own[fitted], fitted) for alpha in ALPHAS}
    for alpha in ALPHAS_BY_ANCHOR:
        judge = d.Calibrated(alpha, standardise=True)
        thresholds[f"calibrated by anchor, {alpha:g}"] = judge.fit(own[fitted], fitted, background=background)
    return {
        "naive": Nobody(),
        "rank window, 10": d.RankWindow(10),
        "absolute, 0.7": d.MaxScore(0.7),
        "margin, 0.05": d.Margin(0.05, own),
        "95 % of the positive": d.ShareOfPositive(own),
        "bands, 0.1 %": d.Bands(bands.low, bands.high),
        **thresholds,
        "mixture, 0.5": kinds,
        f"clusters, {groups.n_clusters}": groups,
        **texts,
        "duplicates by vector, 0.98": d.Duplicates(item_vectors=long),
        "duplicates by vector, 0.8": d.Duplicates(item_vectors=long, cosine=0.8),
    }


def _texts(data: Packages, jaccard: float) -> Detector:
    return ns.detectors.Duplicates(item_texts=data.long, anchor_texts=data.short, jaccard=jaccard)


def judged(detector: Detector, query: ns.Query, mined: ns.Negatives, labels: Ids) -> dict[str, Any]:
    """How good a detector is by one truth, and the quality of the ten nearest that it does not flag.

    Of the taken, those count whose label is known; so do the others in how hard and how full the rows are.
    """
    found = ns.detectors.evaluate(detector, query, mined, labels)
    suspicion = np.asarray(detector.suspicion(query, mined))
    suspected = suspicion >= 0.5
    left = ~suspected
    taken = left & (left.cumsum(axis=1) <= K)
    own, theirs = labels[query.anchors][:, None], labels[mined.ids]
    known = (own >= 0) & (theirs >= 0)
    false = known & (own == theirs)
    part, whole = (taken & false).sum(axis=1), (taken & known).sum(axis=1)
    scores = np.asarray(mined.scores)
    return {
        **{name: _with_interval(found, name) for name in ("mtpr", "mtnr", "precision", "recall")},
        "flagged_percent": rounded(100 * suspected.mean()),
        "false_of_taken": share_of(part.astype(float), whole.astype(float), whole.sum()) if whole.any() else None,
        "auc": rounded(auc(suspicion[false], suspicion[known & ~false]), 4),
        "mean_score": rounded(scores[taken].mean(), 4) if taken.any() else None,
        "filled_percent": rounded(100 * taken.sum() / (K * len(taken))),
        "short_percent": rounded(100 * (taken.sum(axis=1) < K).mean()),
    }


def _with_interval(found: ns.detectors.Evaluation, name: str) -> dict[str, float] | None:
    """A share of an evaluation in per cent; None where nothing could be counted."""
    if np.isnan(getattr(found, name)):
        return None
    low, high = getattr(found, f"{name}_interval")
    return {"percent": rounded(100 * getattr(found, name)), "low": rounded(100 * low), "high": rounded(100 * high)}


def study(data: Packages, n_anchors: int, *, width: int = WIDTH, say: Callable[[str], None]) -> dict[str, Any]:
    """Every detector by three truths: the source, the tags, and the tags where there are several."""
    rng = np.random.default_rng(0)
    long, short = latent_vectors(data.long, data.short, width=width)
    say("vectors")
    evaluated, fitted = chosen(data, n_anchors, rng)
    ids, scores = nearest(short, long, evaluated, MINED)
    say("search")
    query = ns.Query(evaluated, positives=evaluated, vectors=short[evaluated])
    mined = ns.Negatives(ids, scores=scores)
    truths = {
        "source": data.source,
        "tags": data.tags,
        "five tags or more": np.where(data.tag_counts >= MANY_TAGS, data.tags, -1),
    }
    found: dict[str, Any] = {name: {} for name in truths}
    own = np.einsum("nd,nd->n", short[evaluated], long[evaluated])
    for name, detector in detectors(data, short, long, fitted, rng, say).items():
        said = Said(np.asarray(detector.suspicion(query, mined), np.float64))
        for truth, labels in truths.items():
            found[truth][name] = judged(said, query, mined, labels)
        if name.startswith("calibrated"):
            alone = replace(mined, ids=evaluated[:, None], scores=own[:, None])
            passed = np.asarray(detector.suspicion(query, alone))[:, 0] < 0.5
            found["source"][name]["own_let_through"] = share_of(passed.astype(float), np.ones(len(own)), len(own))
        say(name)
    return {
        "packages": len(data.long),
        "sources": len(np.unique(data.source)),
        "with_tags": int((data.tags >= 0).sum()),
        "tag_sets": len(np.unique(data.tags[data.tags >= 0])),
        "anchors": len(evaluated),
        "fitted_to": len(fitted),
        "mined": ids.shape[1],
        "k": K,
        "vectors": f"TF-IDF of the long descriptions, {long.shape[1]} singular vectors, cosine",
        "own_in_nearest_percent": rounded(100 * (own >= scores[:, -1]).mean()),
        "mean_own_score": rounded(own.mean(), 4),
        "truths": {name: _counts(labels, evaluated, ids) for name, labels in truths.items()},
        "detectors": found,
    }


def _counts(labels: Ids, evaluated: Ids, ids: Ids) -> dict[str, Any]:
    """How much of one truth there is to find."""
    own, theirs = labels[evaluated][:, None], labels[ids]
    false, known = (own == theirs) & (own >= 0), (own >= 0) & (theirs >= 0)
    sizes = np.bincount(labels[labels >= 0])
    others = np.where(labels[evaluated] >= 0, sizes[np.maximum(labels[evaluated], 0)] - 1, 0)
    return {
        "anchors_with_false": int(false.any(axis=1).sum()),
        "false_negatives": int(false.sum()),
        "judged": int(known.sum()),
        "false_percent": rounded(100 * false.sum() / max(known.sum(), 1)),
        "of_all_there_are_percent": rounded(100 * false.sum() / max(others.sum(), 1)),
    }
