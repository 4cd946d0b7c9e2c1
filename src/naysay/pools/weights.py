"""How often items come: weights for `Everything(positives, weights=...)`, and frequencies of a stream of batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from naysay._lock import Lock
from naysay._state import Entry, read_state
from naysay.arrays import for_checkpoints, to_numpy
from naysay.checks import (
    as_array,
    check_all,
    check_kind,
    check_number,
    check_range,
    first_bad,
    public,
    raise_invalid,
    whole_numbers,
)
from naysay.pools._slots import check_count
from naysay.positives import Positives
from naysay.text import described
from naysay.types import Query, check_query, positive_ids


@public
def popularity(counts: Positives | ArrayLike, power: float = 0.75) -> NDArray[np.float64]:
    """counts^power: the smoothed popularity of word2vec (0.75), fastText (0.5), or a plain one (1).

    Mikolov et al. Distributed Representations of Words and Phrases. NIPS 2013. Take the counts from the training split
    alone: counts of held-out interactions leak the test set.

    Args:
        counts: (n_items,) how often each item occurs, or a Positives, whose item counts are used.
        power: 0 is uniform over items that occur; below 0 prefers rare items. An item that never occurs has weight
            0 and is never drawn; add 1 to the counts to change that.

    Returns:
        (n_items,) weights.

    Raises:
        NaysayError: If a count or the power is invalid.

    Examples:
        >>> popularity([16, 1, 0], power=0.5).tolist()
        [4.0, 1.0, 0.0]
    """
    array = _counts(counts)
    check_number("power", power, finite=True)
    weights = np.zeros(len(array))
    occurs = array > 0
    with np.errstate(over="ignore"):
        weights[occurs] = array[occurs] ** float(power)
    good = ~occurs | (np.isfinite(weights) & (weights > 0))
    check_all("power", array, good, f"such that counts^{power} is neither 0 nor infinite")
    return weights


@public
def log_uniform(n_items: int, counts: ArrayLike | None = None) -> NDArray[np.float64]:
    """P(rank r) = log((r + 2) / (r + 1)) / log(n + 1): Zipf's law by rank, counted from 0.

    The candidate sampler of TensorFlow, used where counts are unknown but ids are sorted by frequency.

    Args:
        n_items: The number of items. Without counts, ids must be sorted by frequency, the most frequent first.
        counts: (n_items,) how often each item occurs; gives the ranks, ties by id.

    Returns:
        (n_items,) weights of sum 1.

    Raises:
        NaysayError: If sizes or counts are invalid.

    Examples:
        >>> log_uniform(3).round(2).tolist()
        [0.5, 0.29, 0.21]
    """
    size = check_count("n_items", n_items)
    weights = np.log1p(1.0 / np.arange(1.0, size + 1.0)) / np.log(size + 1.0)
    if counts is None:
        return np.asarray(weights)
    array = _counts(counts)
    if len(array) != size:
        raise_invalid("counts", f"of {size} items", len(array))
    by_item = np.empty(size)
    by_item[np.argsort(-array, kind="stable")] = weights
    return by_item


@public
def item_oriented(positives: Positives) -> NDArray[np.float64]:
    """n_anchors - count(i): the fewer anchors have an item, the more likely a missing pair is a true negative.

    Pan et al. One-Class Collaborative Filtering. ICDM 2008, the item-oriented scheme of its Table I.

    Args:
        positives: Whose item counts are used.

    Returns:
        (n_items,) weights.

    Raises:
        NaysayError: If `positives` is not a Positives.

    Examples:
        >>> item_oriented(Positives.from_pairs([0, 1, 1], [0, 0, 1])).tolist()
        [0.0, 1.0]
    """
    check_kind("positives", positives, Positives, "a Positives")
    return np.asarray(positives.n_anchors - positives.item_counts(), np.float64)


def _counts(counts: Positives | ArrayLike) -> NDArray[np.float64]:
    if isinstance(counts, Positives):
        return counts.item_counts().astype(np.float64)
    array = as_array("counts", to_numpy(counts))
    if array.ndim != 1:
        raise_invalid("counts", "of shape (n_items,)", f"shape {array.shape}")
    if array.dtype.kind not in "biuf":
        raise_invalid("counts", "numbers", f"dtype {array.dtype}")
    array = array.astype(np.float64)
    check_all("counts", array, np.isfinite(array) & (array >= 0), "finite and at least 0")
    return array


@final
@public
class StreamingFrequency:
    """Estimate the probability that an item is in a batch, without counting over the whole data first.

    For each item, `last` is the step at which it came last, and `gap` a moving average of the steps between two of
    them: gap <- (1 - rate) gap + rate (step - last). An item that comes every 4 steps has gap 4 and probability 1/4.
    An item that comes twice in a batch counts once: its gap would be 0.

    Use it for in-batch negatives of frequent items: in_batch(..., log_q=frequency.log_q(items), positive_log_q=the
    same, form="classic") is the paper's; form="refined" corrects the negatives alone. These are estimates of the
    probability to be in a batch, so they are not `Negatives.log_q`, which is exact.

    Yi et al. Sampling-Bias-Corrected Neural Modeling for Large Corpus Item Recommendations. RecSys 2019.
    Cost: 16 bytes per item; O(B) per step.

    Args:
        size: The number of items.
        rate: Of the moving average, above 0 and at most 1.
        initial: The gap before an item was seen: about n_items / batch size.
        unseen: The gap reported for an item that was never seen; None: raise.

    Examples:
        >>> import naysay as ns
        >>> frequency = StreamingFrequency(10, rate=0.1, initial=4.0)
        >>> for step in range(40):
        ...     frequency.observe(ns.Query([0, 1], positives=[7, step % 4], step=step))
        >>> frequency.log_q([7, 2]).round(2).tolist()                # every step, and every fourth
        [-0.05, -1.39]
    """

    def __init__(self, size: int, *, rate: float = 0.01, initial: float = 1.0, unseen: float | None = None) -> None:
        """Start with nothing seen."""
        self.size = check_count("size", size)
        self.rate = check_number("rate", rate, above=0, at_most=1)
        self.initial = check_number("initial", initial, at_least=1, finite=True)
        self.unseen = None if unseen is None else check_number("unseen", unseen, at_least=1, finite=True)
        self._lock = Lock()
        self._gap = np.full(self.size, self.initial)
        self._last = np.full(self.size, -1, np.int64)

    def observe(self, query: Query, negatives: Any = None, *, positive_scores: Any = None, vectors: Any = None) -> None:
        """Count the positives of a batch. Call it once a step, with `query.step`.

        Args:
            query: A query with positives; its step is later than those before.
            negatives: Not used.
            positive_scores: Not used.
            vectors: Not used.
        """
        check_query(query)
        came = np.unique(positive_ids(query))
        check_range("ids", came, self.size, "items")
        with self._lock:
            if self._last.max(initial=-1) >= query.step:
                rule = f"a query of a later step than the last, {self._last.max()}"
                raise_invalid("query", rule, f"step {query.step}", "Pass Query(..., step=step).")
            again = came[self._last[came] >= 0]  # the first time there is no gap yet
            gaps = query.step - self._last[again]
            self._gap[again] = (1 - self.rate) * self._gap[again] + self.rate * gaps
            self._last[came] = query.step

    def log_q(self, ids: ArrayLike) -> NDArray[np.float64]:
        """Return the log-probabilities of items, of the shape of `ids`: minus the log of the gap."""
        given = np.asarray(to_numpy(ids))
        items = whole_numbers("ids", given.ravel()).astype(np.int64)
        check_range("ids", items, self.size, "items")
        with self._lock:
            gaps, unseen = self._gap[items], self._last[items] < 0
        if unseen.any():
            if self.unseen is None:
                raise_invalid("ids", "items that were seen", first_bad(items, unseen), "Or pass `unseen`.")
            gaps[unseen] = self.unseen
        return np.asarray(-np.log(gaps).reshape(given.shape))

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """All that the next answer depends on, apart from the settings."""
        with self._lock:
            return {"gap": self._gap.copy(), "last": self._last.copy()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned."""
        read = read_state(state, {"gap": Entry((self.size,)), "last": Entry((self.size,), whole=True)})
        with self._lock:
            self._gap, self._last = read["gap"], read["last"]

    def __repr__(self) -> str:
        return described(self, f"{int((self._last >= 0).sum()):,} items seen")
