"""Rescore: a better, slower score for the best candidates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, check_whole, public, raise_invalid, shown, whole_numbers
from naysay.errors import NaysayError
from naysay.mining.candidates import Candidates, Reason, canonical_order, check_candidates
from naysay.positives import POSITIVE, Positives
from naysay.search._scores import lowest_of

# score_pairs(anchors (n,), ids (n,)) -> (n,), higher is closer
ScorePairs = Callable[[NDArray[np.int64], NDArray[np.int64]], Any]


@public
def rescore(
    candidates: Candidates,
    score_pairs: ScorePairs,
    *,
    positives: Positives | tuple[Any, Any] | None = None,
    budget: int | None = None,
    batch: int = 256,
) -> Candidates:
    """Score the candidates that are left again, for example by a cross-encoder. Ranks stay those of the search.

    Cost: that of score_pairs, ceil(pairs / batch) calls.

    Args:
        candidates: What was found.
        score_pairs: score_pairs(anchors (p,), ids (p,)) -> (p,), higher is closer. It gets `batch` pairs at a time
            across anchors, never a dropped candidate or an empty slot.
        positives: Positives, or (anchors, items): scored first, all of them, so that rules by the positive's score have
            one of the same kind. Without it the positives' scores are unknown from here on.
        budget: The largest number of pairs to score, positives included. Each anchor's best candidates go first, one of
            each anchor in turn; the others are dropped as "not rescored", because two kinds of scores cannot be
            compared. None: all.
        batch: Number of pairs in a call.

    Raises:
        NaysayError: If score_pairs fails or returns anything but finite numbers, with the pairs.

    Examples:
        >>> from types import SimpleNamespace
        >>> found = SimpleNamespace(ids=np.array([[4, 2, 7]]), scores=np.array([[0.9, 0.5, 0.1]]))
        >>> left = rescore(Candidates.of(found), lambda anchors, ids: ids / 8, budget=2)
        >>> left.scores[left.kept].tolist(), left.kept.tolist(), left.rank.tolist()
        ([0.5, 0.25], [[True, True, False]], [[1, 2, 3]])
    """
    check_candidates(candidates)
    check_score_pairs("score_pairs", score_pairs)
    check_whole("batch", batch, 1)
    pairs = _pairs(positives, len(candidates))
    if budget is not None and check_whole("budget", budget, 0) < len(pairs[0]):
        raise_invalid("budget", f"at least {len(pairs[0])}, for the positives alone", budget)
    return rescored(candidates, score_pairs, pairs, budget, batch)


def rescored(
    candidates: Candidates,
    score_pairs: ScorePairs,
    positives: tuple[NDArray[np.int64], NDArray[np.int64]],
    budget: int | None,
    batch: int,
    parameter: str = "score_pairs",
) -> Candidates:
    """The same with arguments that were checked; `parameter` is what the caller calls the function."""
    whose, which = positives
    kept = candidates.kept
    order = canonical_order(candidates, kept)
    turns, rows = np.nonzero(np.take_along_axis(kept, order, axis=1).T)  # the best of each anchor, then the second
    slots = order[rows, turns]
    if budget is not None:
        rows, slots = rows[: budget - len(whose)], slots[: budget - len(whose)]
    anchors = np.concatenate([whose, rows])
    ids = np.concatenate([which, candidates.ids[rows, slots]])
    answers = answers_of(score_pairs, anchors, ids, batch, parameter)
    scores, done = candidates.scores.copy(), np.zeros(kept.shape, np.bool_)
    scores[rows, slots], done[rows, slots] = answers[len(whose) :], True
    lowest = lowest_of(whose, answers[: len(whose)], len(candidates))
    return replace(candidates, scores=scores, positive_scores=lowest).drop(~done, Reason.NOT_RESCORED)


def check_score_pairs(parameter: str, score_pairs: Any) -> None:
    """Raise unless it can be called."""
    if not callable(score_pairs):
        raise_invalid(parameter, "a function score_pairs(anchors, ids)", type(score_pairs).__name__)


def _pairs(positives: Any, n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(anchors, items) of the positives to score."""
    none = np.empty(0, np.int64)
    if positives is None:
        return none, none
    if isinstance(positives, Positives):
        anchors, items = positives.pairs()
        if positives.relation is not None:
            anchors, items = anchors[positives.relation == POSITIVE], items[positives.relation == POSITIVE]
    elif isinstance(positives, tuple) and len(positives) == 2:
        anchors, items = (whole_numbers("positives", to_numpy(part)).astype(np.int64) for part in positives)
    else:
        raise_invalid("positives", "Positives, or (anchors, items)", shown(positives))
    if (
        anchors.shape != items.shape
        or anchors.max(initial=-1) >= n
        or min(anchors.min(initial=0), items.min(initial=0)) < 0
    ):
        raise_invalid("positives", f"pairs of {n} anchors and their items", f"shapes {anchors.shape}, {items.shape}")
    return anchors, items


def answers_of(
    score_pairs: ScorePairs, anchors: NDArray[np.int64], ids: NDArray[np.int64], batch: int, parameter: str
) -> NDArray[np.float32]:
    """(p,) the scores of pairs, `batch` of them in a call."""
    found = np.empty(len(ids), np.float32)
    for start in range(0, len(ids), batch):
        part = slice(start, start + batch)
        found[part] = _answered(score_pairs, anchors[part], ids[part], parameter)
    return found


def _answered(
    score_pairs: ScorePairs, anchors: NDArray[np.int64], ids: NDArray[np.int64], parameter: str
) -> NDArray[np.float32]:
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
    found: NDArray[np.float32] = scores.reshape(-1).astype(np.float32)
    if not np.isfinite(found).all():
        place = int(np.flatnonzero(~np.isfinite(found))[0])
        raise_invalid(parameter, rule, f"{found[place]} for ({anchors[place]}, {ids[place]})")
    return found
