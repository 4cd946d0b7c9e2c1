"""Pairs that a person reviews: drawn among the nearest candidates, and read back to correct the posterior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._intervals import CONFIDENCE, exact_interval
from naysay.arrays import to_numpy
from naysay.checks import as_array, at_row, check_lengths, check_range, raise_invalid, shown, whole_numbers
from naysay.detectors.posterior import first_of
from naysay.mining.candidates import Ids
from naysay.mining.fit import FitLists, FittedPosterior
from naysay.positives import Positives
from naysay.rng import rng_for
from naysay.text import with_interval

_DRAWN = 5  # the step of the seed: see `mining.problem`


@final
@dataclass(frozen=True, slots=True, eq=False)
class Reviewed:
    """Pairs that a person reviewed, each once."""

    anchors: Ids
    items: Ids
    false: NDArray[np.bool_]  # which of them are false negatives
    known: Positives  # the false ones, which are never negatives

    def of_lists(self, lists: FitLists) -> Ids:
        """(A, M) 1 for a false negative, 0 for a true one, -1 for a candidate that was not reviewed."""
        truth = np.full(lists.ids.shape, -1)
        rows = np.minimum(np.searchsorted(lists.anchors, self.anchors), len(lists.anchors) - 1)
        pair, slot = np.nonzero(lists.ids[rows] == self.items[:, None])
        is_listed = lists.anchors[rows[pair]] == self.anchors[pair]
        pair, slot = pair[is_listed], slot[is_listed]
        truth[rows[pair], slot] = self.false[pair]
        return truth

    def describe(self) -> str:
        """What the review found, in a sentence."""
        yes, n = int(self.false.sum()), len(self.false)
        low, high = exact_interval(yes, n, CONFIDENCE)
        found = with_interval(yes / n, low, high)
        return f"{yes:,} of {n:,} reviewed pairs are false negatives: {found}."


def read_reviewed(given: Any, n_anchors: int, n_items: int) -> Reviewed:
    """`reviewed` of `mine`: (anchors, items, truth), three arrays of one length."""
    if not isinstance(given, tuple | list) or len(given) != 3:
        raise_invalid("reviewed", "three arrays (anchors, items, truth)", shown(given))
    anchors, items = (whole_numbers("reviewed", to_numpy(part)).astype(np.int64) for part in given[:2])
    truth = as_array("reviewed", to_numpy(given[2]))
    if truth.ndim != 1 or truth.dtype.kind not in "biu" or not np.isin(truth, (0, 1)).all():
        raise_invalid("reviewed", "a truth of True and False, or 1 and 0", f"{truth.dtype} of shape {truth.shape}")
    check_lengths(anchors=len(anchors), items=len(items), truth=len(truth))
    if not len(anchors):
        raise_invalid("reviewed", "at least one pair", "none")
    check_range("reviewed", anchors, n_anchors, "queries")
    check_range("reviewed", items, n_items, "corpus rows")
    _, first, which = np.unique(np.stack([anchors, items]), axis=1, return_index=True, return_inverse=True)
    odd = np.flatnonzero(truth[first][which.reshape(-1)] != truth)
    if len(odd):
        raise_invalid("reviewed", "one truth for each pair", at_row("another", int(odd[0]), len(odd)))
    first = np.sort(first)
    anchors, items, false = anchors[first], items[first], truth[first].astype(np.bool_)
    known = Positives.from_pairs(anchors[false], items[false], n_anchors, n_items)
    return Reviewed(anchors, items, false, known)


@final
@dataclass(frozen=True, slots=True, eq=False)
class ToReview:
    """Pairs to be reviewed, in random order: the first of them are a random sample, too."""

    anchors: Ids
    items: Ids
    scores: NDArray[np.float64]
    posterior: NDArray[np.float64]  # NaN if there is none


def drawn_pairs(fitted: FittedPosterior, counts: Ids, count: int, reviewed: Reviewed | None = None) -> ToReview:
    """Pairs drawn uniformly, by the seed, among the nearest k candidates of each list that may be taken.

    Those that were reviewed before are not drawn again. All of them if there are fewer.
    """
    lists = fitted.lists
    nearest = first_of(lists.free, counts)
    if reviewed is not None:
        nearest &= reviewed.of_lists(lists) < 0
    places = np.flatnonzero(nearest)
    rng = rng_for(fitted.posterior.seed, _DRAWN)
    places = rng.choice(places, min(count, len(places)), replace=False)
    rows, slots = np.unravel_index(places, nearest.shape)
    posterior = np.full(len(rows), np.nan)
    if fitted.posterior.fitted:
        posterior = fitted.probabilities()[rows, slots]
    return ToReview(lists.anchors[rows], lists.ids[rows, slots], lists.scores[rows, slots], posterior)
