"""Hides half of the positives of anchors that have several: known false negatives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import naysay as ns
from benchmarks.hidden_positives.readers import Collection, Floats, Ids
from benchmarks.hidden_positives.rules import Bench

Flags = NDArray[np.bool_]
WAYS = ("single", "half", "everyone")


@dataclass(frozen=True, eq=False)
class Task:
    """One split: which anchors are evaluated, and which positives are known.

    evaluated       (B,) anchors that are evaluated
    known, hidden   (B, n) positives that are known, and those that are hidden
    fitted          (m,) anchors that thresholds are fitted to, none of them evaluated
    fitted_item     (m,) a positive of each
    fitted_known    (m, n) all positives of these
    """

    evaluated: Ids
    known: Flags
    hidden: Flags
    fitted: Ids
    fitted_item: Ids
    fitted_known: Flags


def hide(data: Collection, seed: int, *, by: str) -> Task:
    """Hide floor(half) of the positives of anchors that have several; thresholds are fitted to other anchors.

    by    "single": thresholds are fitted to the anchors with one positive, and those with several are evaluated
          "half": to a random half of those with several, and the other half is evaluated
          "everyone": to a random half of those with one; all others are evaluated, with nothing hidden from most

    Of a fitted anchor with several positives one is taken, at random.
    """
    rng, counts = np.random.default_rng(seed), data.per_anchor()
    table = np.zeros((len(data.queries), len(data.documents)), bool)
    table[data.anchors, data.items] = True
    several, single = (rng.permutation(np.flatnonzero(chosen)) for chosen in (counts > 1, counts == 1))
    fitted, evaluated = {
        "single": (single, several),
        "half": np.array_split(several, 2)[::-1],
        "everyone": (single[::2], np.concatenate([several, single[1::2]])),
    }[by]
    fitted, evaluated = np.sort(fitted), np.sort(evaluated)
    drawn = np.where(table[evaluated], rng.random((len(evaluated), table.shape[1])), np.inf)
    hidden = table[evaluated] & (drawn.argsort(axis=1).argsort(axis=1) < (counts[evaluated] // 2)[:, None])
    item = np.where(table[fitted], rng.random((len(fitted), table.shape[1])), -1).argmax(axis=1)
    return Task(evaluated, table[evaluated] & ~hidden, hidden, fitted, item, table[fitted])


def bench(
    data: Collection, whole: Floats, task: Task, seed: int, groups: dict[int, ns.detectors.SoftClusters]
) -> Bench:
    """What rules may look at; `whole` holds the scores of all queries with all documents."""
    scores = whole[task.evaluated]
    own, standard = calibration(whole, task)
    moments = row_moments(scores, task.known)
    vectors = data.queries[task.evaluated], data.documents
    rng = np.random.default_rng(seed)
    return Bench(scores, task.known, *vectors, data.texts, own, standard, *moments, groups, rng)


def calibration(whole: Floats, task: Task) -> tuple[Floats, Floats]:
    """(m,) the scores of the fitted anchors' positives, and the same in deviations above the mean of their row."""
    others = whole[task.fitted]
    own = others[np.arange(len(others)), task.fitted_item]
    mean, deviation = row_moments(others, task.fitted_known)
    return own, (own - mean) / deviation


def row_moments(scores: Floats, known: Flags) -> tuple[Floats, Floats]:
    """(B,) mean and deviation of each row's candidates: of all that is not known, hidden positives among it."""
    open_scores = np.where(known, np.nan, scores)
    return np.nanmean(open_scores, axis=1), np.nanstd(open_scores, axis=1, ddof=1)


def hardest(scores: Floats, left: Flags, k: int) -> Flags:
    """(B, n) the k best of those left."""
    shown = np.where(left, scores, -np.inf)
    chosen = np.argpartition(-shown, k - 1, axis=1)[:, :k]
    found = np.zeros(left.shape, bool)
    np.put_along_axis(found, chosen, True, axis=1)
    return found & left
