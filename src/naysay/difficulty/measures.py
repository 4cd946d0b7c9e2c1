"""What negatives are like by difficulty, from scores (B, K) in memory. `study` does all of it over vectors, in blocks.

`mask` (B, K) says which slots count, all if it is not given: `Negatives.mask`. The rule for percentiles, ties and small
sets is in `ranked`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, check_whole, public
from naysay.difficulty._inputs import (
    BINS,
    HARD,
    HARDEST,
    TEMPERATURE,
    check_in_tree,
    check_shares,
    check_temperature,
    read_hierarchy,
    read_labels,
    read_scores,
)
from naysay.difficulty._ranked import Floats, Ranked, cut, rank
from naysay.difficulty.curves import Curve, CurveSums
from naysay.difficulty.hierarchy import depths_of


@public
def percentiles(scores: Any, mask: Any = None) -> Floats:
    """(B, K) float64 from 0, the easiest, to below 1, the hardest: the share of the anchor's negatives that are easier.

    Of equal scores the earlier slot counts as harder, so that a row of m has each of 0, 1/m, ... (m - 1)/m once. NaN
    where the mask is False. O(B K).

    Example:
        >>> percentiles([[0.1, 0.9, -0.5, 0.9]]).tolist()
        [[0.25, 0.75, 0.0, 0.5]]
    """
    ranked = rank(*read_scores(scores, mask))
    places, counts = ranked.places(), ranked.counts[:, None]
    return np.where(places >= 0, (counts - 1 - places) / np.maximum(counts, 1), np.nan)


@public
def bands(scores: Any, mask: Any = None, *, hard: float = HARD, hardest: float = HARDEST) -> NDArray[np.int8]:
    """(B, K) int8: 0 easy, 1 hard, 2 hardest, and -1 where the mask is False.

    Of m negatives the first floor(hardest m) are the hardest, the others of the first floor(hard m) are hard, the rest
    is easy. The defaults are those of Cai et al.: just the top 5 % were needed to train, and the top 0.1 % did harm.

    Example:
        >>> bands([[0.1, 0.9, -0.5, 0.3]], hard=0.5, hardest=0.25).tolist()
        [[0, 2, 0, 1]]
    """
    top, very = check_shares(hard, hardest)
    ranked = rank(*read_scores(scores, mask))
    places, counts = ranked.places(), ranked.counts[:, None]
    found = (places < cut(counts, top)).astype(np.int8) + (places < cut(counts, very))
    return np.where(places >= 0, found, -1).astype(np.int8)


@public
def same_class_share(scores: Any, labels: Any, negative_labels: Any, mask: Any = None, *, bins: int = BINS) -> Curve:
    """The share of negatives of the anchor's own class, which are false negatives, by percentile.

    labels (B,) are the classes of the anchors and negative_labels (K,) or (B, K) those of the slots. Fig. 5a of Cai et
    al. (2020).

    Example:
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
    """The mean depth of the least common ancestor of anchor and negative, by percentile; deeper is more alike.

    hierarchy (nodes,) has the parent of each class and group, -1 for the root (`common_depth`). Fig. 5b of Cai et al.

    Example:
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
    """The mean score by percentile. Fig. 5c of Cai et al.: of cosines, the easy half is below zero.

    Example:
        >>> mean_score([[0.5, -0.25, 0.25, 0.0]], bins=2).mean.tolist()
        [-0.125, 0.375]
    """
    ranked = rank(*read_scores(scores, mask))
    return _curve(ranked, ranked.scores, bins)


@public
def below_zero_share(scores: Any, mask: Any = None, *, bins: int = BINS) -> Curve:
    """The share of negatives with a score below zero, by percentile: how far up the anti-correlated tail reaches.

    Example:
        >>> below_zero_share([[0.5, -0.25, 0.25, 0.0]], bins=2).mean.tolist()
        [0.5, 0.0]
    """
    ranked = rank(*read_scores(scores, mask))
    return _curve(ranked, ranked.scores < 0, bins)


@public
def gradient_mass(scores: Any, mask: Any = None, *, temperature: float = TEMPERATURE, bins: int = BINS) -> Curve:
    """The share of the gradient of InfoNCE that goes to each interval of percentiles; an anchor's shares add up to 1.

    The gradient of the loss by the score of negative j is p_j / t, p_j = e^{s_j/t} / (e^{s+/t} + sum e^{s_i/t}), at the
    temperature t. The positive scales all of an anchor's p_j alike, so that p_j / sum p_i is the softmax over the
    negatives alone.

    Example:
        >>> import math
        >>> gradient_mass([[math.log(3), 0.0]], temperature=1.0, bins=2).mean.round(6).tolist()
        [0.25, 0.75]
    """
    ranked = rank(*read_scores(scores, mask))
    heat = check_temperature(temperature)
    return _curve(ranked, softmax_weights(ranked, heat), bins, shares=True)


def softmax_weights(ranked: Ranked, temperature: float) -> Floats:
    """(B, m) e^{(s - the highest s of the row) / t}; of slots that do not count, anything."""
    first = np.take_along_axis(ranked.scores, np.maximum(ranked.order[:, :1], 0), axis=1).astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.exp((ranked.scores - first) / temperature))


def even(bins: int) -> list[tuple[float, float]]:
    """Intervals of one width, the easiest first."""
    return [(i / bins, (i + 1) / bins) for i in range(bins)]


def _curve(ranked: Ranked, values: NDArray[Any], bins: Any, *, shares: bool = False) -> Curve:
    groups = even(check_whole("bins", bins, 1))
    sums = CurveSums(groups, shares=shares)
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
