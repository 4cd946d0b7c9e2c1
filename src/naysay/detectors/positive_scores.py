"""Scores of positives as users pass them: all of them, or one for each anchor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from naysay.arrays import to_numpy
from naysay.checks import (
    as_array,
    check_lengths,
    check_range,
    check_whole,
    first_bad,
    public,
    raise_invalid,
    whole_numbers,
)
from naysay.quantity.separation import Floats
from naysay.types import Query, anchor_ids, check_query

# The score of a row's positive: a function of the query -> (B,), or (n_anchors,) the lowest of each anchor, by id.
PositiveScores = Callable[[Query], Any] | Floats


def finite_scores(parameter: str, values: Any, shape: str = "(n,)") -> Floats:
    """`values` as finite float64 with as many dimensions as `shape` names, and at least one row."""
    array = as_array(parameter, to_numpy(values))
    if array.ndim != shape.strip("(,)").count(",") + 1:
        raise_invalid(parameter, f"of shape {shape}", f"shape {array.shape}")
    if array.size and array.dtype.kind not in "iuf":
        raise_invalid(parameter, "scores", f"dtype {array.dtype}")
    if len(array) == 0:
        raise_invalid(parameter, "at least one score", "none")
    bad = ~np.isfinite(array.astype(np.float64))
    if bad.any():
        shown = array if array.ndim == 1 else array[np.arange(len(bad)), bad.argmax(axis=1)]
        raise_invalid(parameter, "finite", first_bad(shown, bad))
    return array.astype(np.float64)


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

    Raises:
        NaysayError: If scores are not finite, ids are out of range, or lengths differ.

    Examples:
        >>> lowest_scores([0, 0, 2], [0.9, 0.7, 0.4]).tolist()
        [0.7, nan, 0.4]
    """
    values = finite_scores("scores", scores)
    ids = whole_numbers("anchors", to_numpy(anchors))
    check_lengths(anchors=len(ids), scores=len(values))
    size = int(ids.max()) + 1 if n_anchors is None else check_whole("n_anchors", n_anchors, 1)
    check_range("anchors", ids, max(size, 1), "anchors")
    lowest = np.full(size, np.inf)
    np.minimum.at(lowest, ids, values)
    return np.where(np.isinf(lowest), np.nan, lowest)


def read_positive_scores(given: Any) -> PositiveScores:
    """A function as it is, or a table as float64, NaN for an anchor without positives."""
    if callable(given):
        return given  # type: ignore[no-any-return]
    table = as_array("positive_scores", to_numpy(given))
    rule = "a function of the query, or a score for each anchor (n_anchors,)"
    if table.ndim != 1 or table.dtype.kind not in "iuf" or len(table) == 0:
        raise_invalid("positive_scores", rule, f"{table.dtype} of shape {table.shape}")
    bad = np.isinf(table)
    if bad.any():
        raise_invalid("positive_scores", "finite, or NaN for an anchor without a positive", first_bad(table, bad))
    return table.astype(np.float64)


def scores_of_positives(given: PositiveScores, query: Query) -> Floats:
    """(B,) the score of each row's positive. A row without one is an error."""
    check_query(query)
    if len(query) == 0:
        return np.zeros(0)
    if not callable(given):
        anchors = anchor_ids(query)
        if anchors.ndim != 1:
            advice = "Triples have no table: pass a function of the query as `positive_scores`."
            raise_invalid("query.anchors", "of shape (B,)", f"shape {anchors.shape}", advice)
        check_range("query.anchors", anchors, len(given), "anchors in positive_scores")
        found = given[anchors]
        if np.isnan(found).any():
            advice = "An anchor without a labelled positive has no threshold; leave it out."
            raise_invalid(
                "positive_scores", "known for each anchor of the query", first_bad(found, np.isnan(found)), advice
            )
        return found
    found = as_array("positive_scores", to_numpy(given(query)))
    answers = "a function that returns"
    if found.shape != (len(query),):
        raise_invalid("positive_scores", f"{answers} shape ({len(query)},)", f"shape {found.shape}")
    if found.dtype.kind not in "iuf":
        raise_invalid("positive_scores", f"{answers} numbers", f"dtype {found.dtype}")
    bad = ~np.isfinite(found)
    if bad.any():
        raise_invalid("positive_scores", f"{answers} finite numbers", first_bad(found, bad))
    return found.astype(np.float64)
