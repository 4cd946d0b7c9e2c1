"""Scores of each anchor's positives, and the level of its scores, as users pass them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import Floats, to_numpy
from naysay.checks import (
    MOST_ROWS,
    as_array,
    check_all,
    check_exact,
    check_lengths,
    check_range,
    check_whole,
    public,
    raise_invalid,
    whole_numbers,
)
from naysay.detectors._slots import finite_scores, query_anchors
from naysay.types import Query, check_query

# The score of a row's positive: a function of the query -> (B,), or (n_anchors,) the lowest of each anchor, by id.
PositiveScores = Callable[[Query], Any] | Floats


@public
def lowest_scores(anchors: Any, scores: Any, n_anchors: int | None = None) -> Floats:
    """The lowest score of each anchor with any of its positives, as `Margin` and `ShareOfPositive` use it.

    A candidate below the lowest is below all of them. Cost: O(n + n_anchors).

    Args:
        anchors: (n,) the anchor of each labelled pair.
        scores: (n,) the pairs' scores.
        n_anchors: The number of anchors, by default the largest id plus one.

    Returns:
        (n_anchors,) scores by anchor id, NaN for an anchor without positives.

    Examples:
        >>> lowest_scores([0, 0, 2], [0.9, 0.7, 0.4]).tolist()
        [0.7, nan, 0.4]
    """
    values = finite_scores("scores", scores)
    ids = whole_numbers("anchors", to_numpy(anchors))
    check_lengths(anchors=len(ids), scores=len(values))
    size = int(ids.max()) + 1 if n_anchors is None else check_whole("n_anchors", n_anchors, 1, MOST_ROWS)
    check_range("anchors", ids, max(size, 1), "anchors")
    lowest = np.full(size, np.inf)
    np.minimum.at(lowest, ids, values)
    return np.where(np.isinf(lowest), np.nan, lowest)


def read_positive_scores(given: Any) -> PositiveScores:
    """A function as it is, or a table as float64, NaN for an anchor without positives."""
    if callable(given):
        return cast(PositiveScores, given)
    table = as_array("positive_scores", to_numpy(given))
    if table.ndim != 1 or table.dtype.kind not in "iuf" or len(table) == 0:
        rule = "a function of the query, or a score for each anchor (n_anchors,)"
        raise_invalid("positive_scores", rule, f"{table.dtype} of shape {table.shape}")
    check_exact("positive_scores", table)
    check_all("positive_scores", table, ~np.isinf(table), "finite, or NaN for an anchor without a positive")
    return table.astype(np.float64)


def scores_of_positives(given: PositiveScores | None, query: Query) -> Floats:
    """(B,) the score of each row's positive. A row without one is an error."""
    check_query(query)
    if given is None:
        raise_invalid("positive_scores", "given outside of `mine`", None, "Pass lowest_scores(anchors, scores).")
    if len(query) == 0:
        return np.zeros(0)
    if not callable(given):
        advice = "Triples have no table: pass a function of the query as `positive_scores`."
        found = given[query_anchors(query, len(given), "anchors in positive_scores", advice)]
        advice = "An anchor without a labelled positive has no threshold; leave it out."
        check_all("positive_scores", found, ~np.isnan(found), "known for each anchor of the query", advice)
        return found
    found = as_array("positive_scores", to_numpy(given(query)))
    if found.shape != (len(query),) or found.dtype.kind not in "iuf":
        rule = f"a function that returns numbers of shape ({len(query)},)"
        raise_invalid("positive_scores", rule, f"{found.dtype} of shape {found.shape}")
    check_exact("positive_scores", found)
    check_all("positive_scores", found, np.isfinite(found), "a function that returns finite numbers")
    return found.astype(np.float64)


class Background(NamedTuple):
    """The level of each anchor's scores, by its id: mean and deviation (n_anchors,) over random candidates."""

    mean: Floats
    deviation: Floats

    def standardised(self, scores: Floats, anchors: NDArray[np.int64]) -> Floats:
        """(s - mean) / deviation of each score, for anchors (B,) and scores (B,) or (B, K)."""
        mean, deviation = self.of(anchors)
        shape = (len(anchors),) + (1,) * (scores.ndim - 1)
        return np.asarray((scores - mean.reshape(shape)) / deviation.reshape(shape))

    def of(self, anchors: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Mean and deviation of these anchors, (B,) each. An anchor without a background is an error."""
        check_range("anchors", anchors, len(self.mean), "anchors with a background")
        return self.mean[anchors], self.deviation[anchors]


def read_background(given: Any, *, standardise: bool) -> Background:
    """A table by anchor id, of scores (n_anchors, m) of random candidates, or a tuple (mean, deviation).

    It must be given if and only if scores are standardised. The deviation of m scores divides by m - 1.
    """
    if (given is None) == standardise:
        rule = "given for standardise=True" if standardise else "left out without standardise=True"
        advice = "" if standardise else "Make it Calibrated(alpha, standardise=True) to use it."
        raise_invalid("background", rule, None if given is None else type(given).__name__, advice)
    if isinstance(given, tuple):
        if len(given) != 2:
            raise_invalid("background", "a pair (mean, deviation)", f"a tuple of {len(given)}")
        mean, deviation = (finite_scores("background", part) for part in given)
        if len(mean) != len(deviation):
            got = f"{len(mean)} and {len(deviation)}"
            raise_invalid("background", "a mean and a deviation for each anchor", got)
    else:
        scores = finite_scores("background", given, 2)
        if scores.shape[1] < 2:
            raise_invalid("background", "at least 2 scores for each anchor", scores.shape[1], "Score some hundred.")
        mean, deviation = scores.mean(axis=1), scores.std(axis=1, ddof=1)
        flat = scores.max(axis=1) == scores.min(axis=1)
        deviation = np.where(flat, 0.0, deviation)  # equal numbers may leave a rounding error
    check_all("background", deviation, deviation > 0, "of a deviation above 0")
    return Background(mean, deviation)
