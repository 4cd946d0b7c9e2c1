"""Detectors that compare a score with a threshold: MaxScore, Margin, ShareOfPositive; and RankWindow, by rank.

Suspicion is 0.5 + 0.5 d / (1 + |d|), d the distance of a score from its threshold; just below 0.5 at d = 0.

Moreira et al. NV-Retriever: Improving Text Embedding Models with Effective Hard-Negative Mining. 2024, compares them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast, final

import numpy as np

from naysay.arrays import Floats, to_numpy
from naysay.checks import (
    MOST_ROWS,
    as_array,
    check_all,
    check_exact,
    check_lengths,
    check_number,
    check_range,
    check_whole,
    public,
    raise_invalid,
    whole_numbers,
)
from naysay.detectors._suspicion import (
    as_suspicion,
    by_distance,
    check_scored,
    filled_slots,
    finite_scores,
    in_precision_of,
    query_anchors,
    slot_scores,
)
from naysay.text import described
from naysay.types import Array, MadeOf, Negatives, Query, anchor_ids, check_query

# The score of a row's positive: a function of the query -> (B,), or (n_anchors,) the lowest of each anchor, by id.
PositiveScores = Callable[[Query], Any] | Floats


@final
@public
class MaxScore:
    """Suspect what scores above `high`, whatever the anchor: TopK-Abs, or `max_score` of other miners.

    The right number depends on the encoder: cosines of one lie between 0.7 and 1, of another around 0. `Calibrated`
    finds a threshold by labelled positives, `choose_thresholds` by the share of pairs above it.

    Args:
        high: The highest score that a negative may have. A score of exactly `high` is kept.

    Examples:
        >>> import naysay as ns
        >>> asked = ns.Negatives(np.array([[3, 4, -1]]), scores=np.array([[0.7, 0.8, 0.0]]))
        >>> (MaxScore(0.7).suspicion(ns.Query([0]), asked) >= 0.5).tolist()
        [[False, True, False]]
    """

    def __init__(self, high: float) -> None:
        self.high = check_number("high", high, finite=True)

    def threshold(self, query: Query) -> Floats:
        """(B,) the highest score that a negative of each row may have."""
        check_query(query)
        return np.full(len(query), self.high)

    def suspicion(self, query: Query, negatives: Negatives) -> Array:
        """(B, K): at least 0.5 where a score is above `high`, which is rounded to the precision of the scores."""
        check_scored(query, negatives)
        return as_suspicion(self.unchecked_suspicion(query, negatives), negatives)

    def unchecked_suspicion(self, query: Query, negatives: Negatives) -> Floats:
        """`suspicion` without checks, for negatives that naysay made."""
        return by_distance(slot_scores(negatives), in_precision_of(negatives.scores, self.high))

    __repr__ = described


@final
@public
class Margin(MadeOf):
    """Suspect what scores above s+ - margin, s+ the positive's score: TopK-MarginPos, `absolute_margin`.

    A score equal to the threshold is kept. An anchor without a known positive is an error. The right margin depends on
    the encoder: with one that scores everything between 0.9 and 1, a margin of 0.05 drops nearly all negatives.

    Args:
        margin: How far a negative has to stay below its anchor's positive, in units of the score. With a negative
            margin it may score higher by that much: -0.1 is the mask of Qwen3's batches.
        positive_scores: The scores s+: a function of the query -> (B,), e.g. lambda query: score(query.anchors,
            query.positives); or (n_anchors,) the lowest score of each anchor's positives by id, as `lowest_scores`
            returns it. None: `mine` fills them in; elsewhere that is an error.

    Examples:
        >>> import naysay as ns
        >>> asked = ns.Negatives(np.array([[3, 4, -1]]), scores=np.array([[0.7, 0.8, 0.0]]))
        >>> rule = Margin(0.05, positive_scores=[0.8])
        >>> rule.threshold(ns.Query([0])).tolist(), (rule.suspicion(ns.Query([0]), asked) >= 0.5).tolist()
        ([0.75], [[False, True, False]])
    """

    _made_of = ("positive_scores",)

    def __init__(self, margin: float, positive_scores: Any = None) -> None:
        self.margin = check_number("margin", margin, finite=True)
        self.positive_scores = _read_positive_scores(positive_scores)

    def threshold(self, query: Query) -> Floats:
        """(B,) the highest score that a negative of each row may have."""
        _check_positives(self.positive_scores, query)
        return self.unchecked_threshold(query)

    def unchecked_threshold(self, query: Query) -> Floats:
        """`threshold` without checks, for a query that naysay made."""
        return _scores_of_positives(self.positive_scores, query) - self.margin

    def suspicion(self, query: Query, negatives: Negatives) -> Array:
        """(B, K): at least 0.5 where a score is above the row's threshold."""
        check_scored(query, negatives)
        _check_positives(self.positive_scores, query)
        return as_suspicion(self.unchecked_suspicion(query, negatives), negatives)

    def unchecked_suspicion(self, query: Query, negatives: Negatives) -> Floats:
        """`suspicion` without checks, for a query and negatives that naysay made."""
        return by_distance(slot_scores(negatives), self.unchecked_threshold(query)[:, None])

    def describe(self) -> str:
        """What is suspected, in a sentence."""
        return f"Suspected: scores above that of the anchor's positive minus {self.margin:g}."

    __repr__ = described


@final
@public
class ShareOfPositive(MadeOf):
    """Suspect what scores above a share of the positive's score: s > s+ - |s+| (1 - share), TopK-PercPos.

    For s+ >= 0 the threshold is share * s+. For s+ < 0 that product would be *above* the positive, and keep candidates
    that are closer than it; with |s+| the threshold is below it for either sign. A score equal to the threshold is
    kept. `docs/detectors.md` compares it with `Calibrated` over five encoders.

    Args:
        positive_scores: The scores s+, as for `Margin`.
        share: 0.95 is the default or the advice of every miner that has this rule. 1 is the positive's own score.

    Examples:
        >>> import naysay as ns
        >>> ShareOfPositive([0.8, -0.2]).threshold(ns.Query([0, 1])).round(6).tolist()
        [0.76, -0.21]
    """

    _made_of = ("positive_scores",)

    def __init__(self, positive_scores: Any = None, share: float = 0.95) -> None:
        self.share = check_number("share", share, above=0, at_most=1)
        self.positive_scores = _read_positive_scores(positive_scores)

    def threshold(self, query: Query) -> Floats:
        """(B,) the highest score that a negative of each row may have."""
        _check_positives(self.positive_scores, query)
        return self.unchecked_threshold(query)

    def unchecked_threshold(self, query: Query) -> Floats:
        """`threshold` without checks, for a query that naysay made."""
        positive = _scores_of_positives(self.positive_scores, query)
        return positive - np.abs(positive) * (1 - self.share)

    def suspicion(self, query: Query, negatives: Negatives) -> Array:
        """(B, K): at least 0.5 where a score is above the row's threshold."""
        check_scored(query, negatives)
        _check_positives(self.positive_scores, query)
        return as_suspicion(self.unchecked_suspicion(query, negatives), negatives)

    def unchecked_suspicion(self, query: Query, negatives: Negatives) -> Floats:
        """`suspicion` without checks, for a query and negatives that naysay made."""
        return by_distance(slot_scores(negatives), self.unchecked_threshold(query)[:, None])

    def describe(self) -> str:
        """What is suspected, in a sentence."""
        return f"Suspected: scores above {100 * self.share:g} % of that of the anchor's positive."

    __repr__ = described


@final
@public
class RankWindow:
    """Suspect the `skip` highest scores of each row: Shift-N, `range_min`, or "ranks 10 to 210" of other miners.

    Suspicion is skip / (skip + rank), with ranks from 1: 0.5 at rank `skip`, below it for later ranks. Equal scores are
    ranked by id, the lower first. Ranks count all slots with an id, so rows should hold the *nearest* candidates of an
    anchor; in a row with `skip` candidates or fewer all are suspected.

    Args:
        skip: The number of nearest candidates that are suspected.

    Examples:
        >>> import naysay as ns
        >>> asked = ns.Negatives(np.array([[3, 4, 5, -1]]), scores=np.array([[0.7, 0.8, 0.1, 0.0]]))
        >>> RankWindow(1).suspicion(ns.Query([0]), asked).round(3).tolist()
        [[0.333, 0.5, 0.25, 0.0]]
    """

    def __init__(self, skip: int) -> None:
        self.skip = check_whole("skip", skip, 0)

    def suspicion(self, query: Query, negatives: Negatives) -> Array:
        """(B, K): at least 0.5 for the nearest `skip` of each row."""
        check_scored(query, negatives)
        ids = np.asarray(to_numpy(negatives.ids))
        by_score = np.where(filled_slots(negatives), -slot_scores(negatives), np.inf)  # empty slots last
        order = np.lexsort((ids, by_score))
        ranks = np.argsort(order, axis=1) + 1
        return as_suspicion(self.skip / (self.skip + ranks), negatives)

    __repr__ = described


@public
def lowest_scores(anchors: Any, scores: Any, n_anchors: int | None = None) -> Floats:
    """The lowest score of each anchor with any of its positives, as `Margin` and `ShareOfPositive` use it.

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


def _read_positive_scores(given: Any) -> PositiveScores | None:
    """A function as it is, or a table as float64, NaN for an anchor without positives."""
    if given is None or callable(given):
        return cast(PositiveScores | None, given)
    table = as_array("positive_scores", to_numpy(given))
    if table.ndim != 1 or table.dtype.kind not in "iuf" or len(table) == 0:
        rule = "a function of the query, or a score for each anchor (n_anchors,)"
        raise_invalid("positive_scores", rule, f"{table.dtype} of shape {table.shape}")
    check_exact("positive_scores", table)
    check_all("positive_scores", table, ~np.isinf(table), "finite, or NaN for an anchor without a positive")
    return table.astype(np.float64)


def _check_positives(given: PositiveScores | None, query: Query) -> None:
    """Raise unless each row of a query has a positive's score."""
    check_query(query)
    if given is None:
        raise_invalid("positive_scores", "given outside of `mine`", None, "Pass lowest_scores(anchors, scores).")
    if len(query) == 0 or callable(given):
        return
    advice = "Triples have no table: pass a function of the query as `positive_scores`."
    scores = given[query_anchors(query, len(given), "anchors in positive_scores", advice)]
    advice = "An anchor without a labelled positive has no threshold; leave it out."
    check_all("positive_scores", scores, ~np.isnan(scores), "known for each anchor of the query", advice)


def _scores_of_positives(given: PositiveScores | None, query: Query) -> Floats:
    """(B,) the score of each row's positive. Only what a function returns is checked."""
    if len(query) == 0 or given is None:
        return np.zeros(0)
    if not callable(given):
        return given[anchor_ids(query)]
    scores = as_array("positive_scores", to_numpy(given(query)))
    if scores.shape != (len(query),) or scores.dtype.kind not in "iuf":
        rule = f"a function that returns numbers of shape ({len(query)},)"
        raise_invalid("positive_scores", rule, f"{scores.dtype} of shape {scores.shape}")
    check_exact("positive_scores", scores)
    check_all("positive_scores", scores, np.isfinite(scores), "a function that returns finite numbers")
    return scores.astype(np.float64)
