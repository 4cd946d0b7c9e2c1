"""Labels that are not random: a check by item vectors, and a correction by labelled candidates."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from naysay.detectors._posterior_alike import fit_evidence, tail_of
from naysay.detectors._posterior_model import LARGEST, Model
from naysay.detectors._posterior_pool import Lists
from naysay.detectors.cut import mean_of
from naysay.detectors.posterior_summary import LabelCheck

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
_PRIOR = 3.0  # the standard deviation of the shift that labelled candidates may show
_GATE = 0.5  # of the target: the least excess that corrects
_ROUNDS = 2
_STEPS, _FARTHEST = 80, 40.0  # of bisection


def check_labels(model: Model, lists: Lists, seed: int, k: int, target: float) -> tuple[Model, LabelCheck | None]:
    """Compare the posterior with an estimate that does not use c, and shift it where that one is clearly larger.

    Clearly: the lower limit of the excess is at least half the target. The shift makes the mean posterior equal that
    estimate. Then the evidence is fitted again, with the shifted posterior as its prior: with too small a prior, EM had
    put too much of the positives among the most similar. Twice at most. None if there are no item vectors.
    """
    if lists.alike is None or not len(model.similar):
        return model, None
    near, posterior = lists.nearest(k), model.of_lists(lists, seed)
    tail, by_labels, shift = tail_of(lists, posterior, k), mean_of(posterior, near), 0.0
    by_vectors = tail.estimate
    for _ in range(_ROUNDS):
        if not (tail.estimate > mean_of(posterior, near) and tail.low >= _GATE * target):  # also if NaN
            break
        by, by_vectors = _shift_to(posterior[near], tail.estimate), tail.estimate
        model, shift = fit_evidence(model.shifted(by), lists, model.depth, seed), shift + by
        posterior = model.of_lists(lists, seed)
        tail = tail_of(lists, posterior, k)
    return model, LabelCheck(by_labels, by_vectors, tail.excess, tail.low, shift)


def _shift_to(posterior: Floats, mean: float) -> float:
    """What must be added to the log-odds of posteriors for this mean."""
    return _solved(lambda by: float(moved(posterior, by).mean()) < mean, 0.0, _FARTHEST)


def corrected(model: Model, lists: Lists, seed: int, asked: Mask, truth: Mask) -> Model:
    """The model corrected by labelled candidates, drawn at random among the nearest k.

    If at least as many are false as expected, a shift of the log-odds by maximum likelihood, with a normal prior of
    deviation 3. If fewer are, a larger c at which as many are expected.

    Args:
        model: What to correct.
        lists: The candidates.
        seed: Of the places among equal scores.
        asked: (A, M): candidates that were labelled.
        truth: (A, M): those that are false negatives.
    """
    rows = np.asarray(asked.any(axis=1))
    lists, asked, truth = lists.take(rows), asked[rows], truth[rows]
    values, false = model.of_lists(lists, seed)[asked], truth[asked]
    if false.mean() >= values.mean():
        shift = _solved(lambda by: float((false - moved(values, by)).sum()) > by / _PRIOR**2, -_FARTHEST, _FARTHEST)
        return model.shifted(shift)
    share = (false.sum() + 0.5) / (len(false) + 1)  # none of 100 does not mean that none is
    if share >= values.mean():
        return model

    def expected(odds: float) -> float:
        return float(model.raised(1 / (1 + np.exp(-odds))).of_lists(lists, seed)[asked].mean())

    start = float(np.log(model.c) - np.log1p(-model.c))
    odds = _solved(lambda odds: expected(odds) > share, start, start + 20.0)
    return model.raised(min(1 / (1 + float(np.exp(-odds))), 1 - 1e-9))


def moved(posterior: Floats, by: float) -> Floats:
    """sigmoid(logit posterior + by)."""
    inside = np.clip(posterior, 0.0, LARGEST)
    odds = inside / (1 - inside) * np.exp(by)
    return np.asarray(odds / (1 + odds))


def _solved(more: Callable[[float], bool], low: float, high: float) -> float:
    """Where `more` turns from True to False, by bisection."""
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if more(middle) else (low, middle)
    return (low + high) / 2
