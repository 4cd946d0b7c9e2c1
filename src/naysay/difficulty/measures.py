"""Measures of negatives by difficulty, from scores (B, K) in memory, and the similarity of classes in a tree.

`study` has all of them over vectors, in blocks. The rule for percentiles, ties and small sets is in `curves`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, check_range, public, raise_invalid, whole_numbers
from naysay.difficulty.curves import (
    BINS,
    HARD,
    HARDEST,
    TEMPERATURE,
    Curve,
    CurveSums,
    Floats,
    Ranked,
    check_shares,
    check_temperature,
    cut,
    even_intervals,
    rank,
    read_labels,
    read_scores,
)


@public
def percentiles(scores: Any, mask: Any = None) -> Floats:
    """Return the percentile of each negative: the share of the anchor's negatives that are easier.

    Of equal scores the earlier slot counts as harder, so that a row of m has each of 0, 1/m, ... (m - 1)/m once. Cost:
    O(B K).

    Args:
        scores: (B, K), a row for each anchor; finite where they count.
        mask: (B, K) bool, True where a slot counts (`Negatives.mask`); None: all do.

    Returns:
        (B, K) float64 from 0, the easiest, to below 1, the hardest; NaN where the mask is False.

    Examples:
        >>> percentiles([[0.1, 0.9, -0.5, 0.9]]).tolist()
        [[0.25, 0.75, 0.0, 0.5]]
    """
    ranked = rank(*read_scores(scores, mask))
    ranks, counts = ranked.ranks(), ranked.counts[:, None]
    return np.where(ranks >= 0, (counts - 1 - ranks) / np.maximum(counts, 1), np.nan)


@public
def bands(scores: Any, mask: Any = None, *, hard: float = HARD, hardest: float = HARDEST) -> NDArray[np.int8]:
    """Assign each negative to a band: easy, hard or hardest.

    Of m negatives the top floor(hardest m) are the hardest, the others of the top floor(hard m) are hard, the rest are
    easy. The defaults are those of Cai et al.: only the top 5 % were needed to train, and the top 0.1 % were harmful.

    Args:
        scores: (B, K), a row for each anchor; finite where they count.
        mask: (B, K) bool, True where a slot counts (`Negatives.mask`); None: all do.
        hard: The share of hard negatives, with the hardest; above 0 and below 1.
        hardest: The share of the hardest; at least 0 and below `hard`.

    Returns:
        (B, K) int8: 0 easy, 1 hard, 2 hardest, and -1 where the mask is False.

    Examples:
        >>> bands([[0.1, 0.9, -0.5, 0.3]], hard=0.5, hardest=0.25).tolist()
        [[0, 2, 0, 1]]
    """
    hard_share, hardest_share = check_shares(hard, hardest)
    ranked = rank(*read_scores(scores, mask))
    ranks, counts = ranked.ranks(), ranked.counts[:, None]
    band = (ranks < cut(counts, hard_share)).astype(np.int8) + (ranks < cut(counts, hardest_share))
    return np.where(ranks >= 0, band, -1).astype(np.int8)


@public
def same_class_share(scores: Any, labels: Any, negative_labels: Any, mask: Any = None, *, bins: int = BINS) -> Curve:
    """Return the share of negatives of the anchor's own class, which are false negatives, by percentile.

    Fig. 5a of Cai et al. (2020).

    Args:
        scores: (B, K), a row for each anchor; finite where they count.
        labels: (B,) classes of the anchors.
        negative_labels: (K,) or (B, K) classes of the slots.
        mask: (B, K) bool, True where a slot counts (`Negatives.mask`); None: all do.
        bins: The number of intervals of percentiles, all of one width.

    Examples:
        >>> same_class_share([[0.9, 0.2], [0.1, 0.4]], [0, 1], [0, 1], bins=2).mean.tolist()
        [0.0, 1.0]
    """
    ranked = rank(*read_scores(scores, mask))
    own, theirs = _labels(ranked, labels, negative_labels)
    return _curve(ranked, own[:, None] == theirs, bins)


@public
def ancestor_depth(
    scores: Any, labels: Any, negative_labels: Any, hierarchy: Any, mask: Any = None, *, bins: int = BINS
) -> Curve:
    """Return the mean depth of the least common ancestor of anchor and negative, by percentile.

    Deeper is more similar. Fig. 5b of Cai et al.

    Args:
        scores: (B, K), a row for each anchor; finite where they count.
        labels: (B,) classes of the anchors.
        negative_labels: (K,) or (B, K) classes of the slots.
        hierarchy: (nodes,) the parent of each class and group, -1 for the root (`common_depth`).
        mask: (B, K) bool, True where a slot counts (`Negatives.mask`); None: all do.
        bins: The number of intervals of percentiles, all of one width.

    Examples:
        >>> tree = [3, 3, 4, 4, -1]                    # classes 0 and 1 are one group
        >>> ancestor_depth([[0.9, 0.5, 0.1]], [0], [0, 1, 2], tree, bins=3).mean.tolist()
        [0.0, 1.0, 2.0]
    """
    ranked = rank(*read_scores(scores, mask))
    own, theirs = _labels(ranked, labels, negative_labels)
    parents = read_hierarchy(hierarchy)
    check_in_tree("labels", own, parents)
    check_in_tree("negative_labels", theirs[0] if len(theirs) == 1 else theirs, parents)
    (rows, row_of), (columns, column_of) = (np.unique(given, return_inverse=True) for given in (own, theirs))
    depths = depths_of(parents, rows, columns)
    return _curve(ranked, depths[row_of[:, None], column_of.reshape(theirs.shape)], bins)


@public
def mean_score(scores: Any, mask: Any = None, *, bins: int = BINS) -> Curve:
    """Return the mean score by percentile. Fig. 5c of Cai et al.: the easy half has cosines below zero.

    Args:
        scores: (B, K), a row for each anchor; finite where they count.
        mask: (B, K) bool, True where a slot counts (`Negatives.mask`); None: all do.
        bins: The number of intervals of percentiles, all of one width.

    Examples:
        >>> mean_score([[0.5, -0.25, 0.25, 0.0]], bins=2).mean.tolist()
        [-0.125, 0.375]
    """
    ranked = rank(*read_scores(scores, mask))
    return _curve(ranked, ranked.scores, bins)


@public
def below_zero_share(scores: Any, mask: Any = None, *, bins: int = BINS) -> Curve:
    """Return the share of negatives with a score below zero, by percentile: the size of the anti-correlated tail.

    Args:
        scores: (B, K), a row for each anchor; finite where they count.
        mask: (B, K) bool, True where a slot counts (`Negatives.mask`); None: all do.
        bins: The number of intervals of percentiles, all of one width.

    Examples:
        >>> below_zero_share([[0.5, -0.25, 0.25, 0.0]], bins=2).mean.tolist()
        [0.5, 0.0]
    """
    ranked = rank(*read_scores(scores, mask))
    return _curve(ranked, ranked.scores < 0, bins)


@public
def gradient_mass(scores: Any, mask: Any = None, *, temperature: float = TEMPERATURE, bins: int = BINS) -> Curve:
    """Return the share of the InfoNCE gradient in each interval of percentiles; an anchor's shares add up to 1.

    The gradient of the loss by the score of negative j is p_j / t, p_j = e^{s_j/t} / (e^{s+/t} + sum e^{s_i/t}), at the
    temperature t. The positive scales all p_j of an anchor by one factor, so p_j / sum p_i is the softmax over the
    negatives alone.

    Args:
        scores: (B, K), a row for each anchor; finite where they count.
        mask: (B, K) bool, True where a slot counts (`Negatives.mask`); None: all do.
        temperature: t, above 0.
        bins: The number of intervals of percentiles, all of one width.

    Examples:
        >>> import math
        >>> gradient_mass([[math.log(3), 0.0]], temperature=1.0, bins=2).mean.round(6).tolist()
        [0.25, 0.75]
    """
    ranked = rank(*read_scores(scores, mask))
    return _curve(ranked, softmax_weights(ranked, check_temperature(temperature)), bins, shares=True)


def softmax_weights(ranked: Ranked, temperature: float) -> Floats:
    """(B, m) e^{(s - the highest s of the row) / t}; any number in slots that do not count."""
    first = np.take_along_axis(ranked.scores, np.maximum(ranked.order[:, :1], 0), axis=1).astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.exp((ranked.scores - first) / temperature))


def _curve(ranked: Ranked, values: NDArray[Any], bins: Any, *, shares: bool = False) -> Curve:
    sums = CurveSums(even_intervals(bins), shares=shares)
    sums.add(ranked, values)
    return sums.curve(slice(None))


def _labels(ranked: Ranked, labels: Any, negative_labels: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """(B,), and (1, K) or (B, K)."""
    rows, width = ranked.order.shape
    own = read_labels("labels", labels, rows, "anchors")
    theirs = as_array("negative_labels", to_numpy(negative_labels))
    if theirs.ndim == 2 and theirs.shape == (rows, width):
        return own, read_labels("negative_labels", theirs.reshape(-1), rows * width, "slots").reshape(rows, -1)
    return own, read_labels("negative_labels", theirs, width, "negatives")[None, :]


@public
def common_depth(hierarchy: Any, first: Any, second: Any) -> NDArray[np.int64]:
    """Return the depth of the least common ancestor of each class in `first` and each in `second`.

    Deeper is more similar: the ancestor of two equal classes is the class itself, that of unrelated ones the root. The
    captions of Figs. 4b and 5b in Cai et al. (2020) have it the other way round; their text agrees with this.

    Cost: O(a b depth) for different classes.

    Args:
        hierarchy: (nodes,) the parent of each class and of each group of classes; -1 for the one root, of depth 0.
        first: (a,) classes.
        second: (b,) classes.

    Returns:
        (a, b) int64.

    Examples:
        >>> tree = [4, 4, 5, 5, 6, 6, -1]              # classes 0 and 1 are one group, 2 and 3 the other
        >>> common_depth(tree, [0, 2], [0, 1, 3]).tolist()
        [[2, 1, 0], [0, 0, 1]]
    """
    one, two = (whole_numbers(name, to_numpy(given)) for name, given in (("first", first), ("second", second)))
    parents = read_hierarchy(hierarchy)
    check_in_tree("first", one, parents)
    check_in_tree("second", two, parents)
    return depths_of(parents, one, two)


def read_hierarchy(hierarchy: Any) -> NDArray[np.int64]:
    """Return the parent of each class and of each group of classes, -1 for the root; one tree."""
    parents = whole_numbers("hierarchy", to_numpy(hierarchy)).astype(np.int64)
    size = len(parents)
    if not size:
        raise_invalid("hierarchy", "the parent of each class", "nothing")
    check_range("hierarchy", parents, size, "classes and groups", least=-1)
    roots = np.flatnonzero(parents < 0)
    if len(roots) > 1:
        advice = "Give them a common parent."
        raise_invalid("hierarchy", "one tree, with one root (-1)", f"roots {roots[:2].tolist()} ({len(roots)})", advice)
    above = np.where(parents < 0, np.arange(size), parents)
    for _ in range(size.bit_length()):  # doubles the distance: all reach the root, or are in a cycle
        above = above[above]
    lost = ~np.isin(above, roots)
    if lost.any():
        raise_invalid("hierarchy", "without a cycle", f"a cycle above class {np.flatnonzero(lost)[0]}")
    return parents


def check_in_tree(parameter: str, labels: NDArray[Any], parents: NDArray[np.int64]) -> None:
    """Raise if a class is not in the tree."""
    check_range(parameter, labels, len(parents), "classes and groups in `hierarchy`")


def depths_of(parents: NDArray[np.int64], first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.int64]:
    """`common_depth` in a checked tree."""
    one, two = paths_of(parents, first), paths_of(parents, second)
    levels = min(one.shape[1], two.shape[1])
    depths = np.full((len(first), len(second)), -1, np.int64)
    for level in range(levels):
        both = (one[:, level, None] == two[None, :, level]) & (one[:, level, None] >= 0)
        depths += both  # paths never meet again, so this counts the levels that they share
    return depths


def paths_of(parents: NDArray[np.int64], classes: NDArray[Any]) -> NDArray[np.int64]:
    """(n, levels) the nodes from the root down to each class, then -1."""
    steps = [classes.astype(np.int64)]
    while len(classes) and (steps[-1] >= 0).any():
        above = parents[np.maximum(steps[-1], 0)]
        steps.append(np.where(steps[-1] >= 0, above, -1))
    upwards = np.stack(steps, axis=1)  # the class first, its ancestors after it, then -1
    lengths = (upwards >= 0).sum(axis=1)
    places = lengths[:, None] - 1 - np.arange(upwards.shape[1])
    turned = np.take_along_axis(upwards, np.maximum(places, 0), axis=1)
    return np.where(places >= 0, turned, -1)
