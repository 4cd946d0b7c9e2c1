"""Weights over items for `Everything(positives, weights=...)`: popularity, its ranks, and its opposite."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, check_all, check_kind, check_number, public, raise_invalid
from naysay.pools._slots import check_count
from naysay.positives import Positives


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
