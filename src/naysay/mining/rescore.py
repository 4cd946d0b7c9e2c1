"""Rescore: a better, slower score for the best candidates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from naysay.arrays import to_numpy
from naysay.checks import as_array, raise_invalid
from naysay.errors import NaysayError
from naysay.mining.candidates import Candidates, Floats32, Ids, Reason, canonical_order
from naysay.search._scores import lowest_of

# score_pairs(anchors (n,), ids (n,)) -> (n,), higher is closer
ScorePairs = Callable[[Ids, Ids], Any]


def rescore(
    candidates: Candidates, score_pairs: ScorePairs, positives: tuple[Ids, Ids], budget: int | None, batch: int
) -> Candidates:
    """Score positives (anchors, items) and the candidates that are left again. Ranks stay those of the search.

    Within the budget, positives come first, then each anchor's best candidate, then its second, and so on. The others
    are dropped as "not rescored", because two kinds of scores cannot be compared.
    """
    anchors, items = positives
    kept = candidates.kept
    order = canonical_order(candidates, kept)
    turns, rows = np.nonzero(np.take_along_axis(kept, order, axis=1).T)  # the best of each anchor, then the second
    slots = order[rows, turns]
    if budget is not None:
        left = budget - len(anchors)
        rows, slots = rows[:left], slots[:left]
    all_anchors = np.concatenate([anchors, rows])
    all_items = np.concatenate([items, candidates.ids[rows, slots]])
    answers = answers_of(score_pairs, all_anchors, all_items, batch, "rescore")
    scores, done = candidates.scores.copy(), np.zeros(kept.shape, np.bool_)
    scores[rows, slots], done[rows, slots] = answers[len(anchors) :], True
    lowest = lowest_of(anchors, answers[: len(anchors)], len(candidates))
    return replace(candidates, scores=scores, positive_scores=lowest).drop(~done, Reason.NOT_RESCORED)


def answers_of(score_pairs: ScorePairs, anchors: Ids, ids: Ids, batch: int, parameter: str) -> Floats32:
    """(p,) the scores of pairs, `batch` of them in a call; `parameter` is what the user calls the function."""
    answers = np.empty(len(ids), np.float32)
    for start in range(0, len(ids), batch):
        part = slice(start, start + batch)
        answers[part] = _answered(score_pairs, anchors[part], ids[part], parameter)
    return answers


def _answered(score_pairs: ScorePairs, anchors: Ids, ids: Ids, parameter: str) -> Floats32:
    """The scores of one batch: (p,) finite numbers."""
    rule = f"a function that answers with {len(ids)} finite numbers for {len(ids)} pairs"
    ends = f"from ({anchors[0]}, {ids[0]}) to ({anchors[-1]}, {ids[-1]})"
    try:
        given = score_pairs(anchors, ids)
    except Exception as error:
        message = f"`{parameter}` must be {rule}, got {type(error).__name__}: {error}, {ends}."
        raise NaysayError(message) from error
    scores = as_array(parameter, to_numpy(given))
    if scores.shape not in ((len(ids),), (len(ids), 1)) or scores.dtype.kind not in "iuf":
        raise_invalid(parameter, rule, f"shape {scores.shape} {scores.dtype}, {ends}")
    answers: Floats32 = scores.reshape(-1).astype(np.float32)
    if not np.isfinite(answers).all():
        place = int(np.flatnonzero(~np.isfinite(answers))[0])
        raise_invalid(parameter, rule, f"{answers[place]} for ({anchors[place]}, {ids[place]})")
    return answers
