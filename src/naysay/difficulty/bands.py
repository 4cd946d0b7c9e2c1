"""How hard each negative is for its anchor: percentiles, bands, means by percentile, and which ones are always hard.

The m negatives of an anchor are ranked by score, the hardest at rank 0; of equal scores the earlier slot comes first.
The percentile of a rank is the share of the m that are easier, (m - 1 - rank) / m: 0 for the easiest, below 1 for the
hardest. The interval [low, high) of percentiles is the ranks floor((1 - high) m) to floor((1 - low) m), the last not
included. So adjacent intervals share no negative and leave none out, and the hardest 0.1 % of fewer than 1,000 is
none. `samplers.PercentileRange` uses the same rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import frozen
from naysay.arrays import to_numpy
from naysay.checks import (
    as_array,
    check_all,
    check_exact,
    check_number,
    check_range,
    check_whole,
    first_bad,
    public,
    raise_invalid,
    whole_numbers,
)
from naysay.text import short_repr

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Mask = NDArray[np.bool_]

BANDS = ("easy", "hard", "hardest")
HARD = 0.05  # Cai et al.: enough to train with
HARDEST = 0.001  # Cai et al.: harmful
BINS = 20
TEMPERATURE = 0.2
_MAX_BINS = 1_000_000
_ROUNDING = 1e-9  # (1 - 0.9) * 10 is 0.9999999999999998, which must count as 1
_NO_VARIANCE = 1e-9  # a count whose variance is below this cannot differ from its expectation


@final
@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A mean for each interval of percentiles, the easiest first.

    Attributes:
        low: (g,) start of the interval [low, high), 0.0 the easiest.
        high: (g,) end of the interval, 1.0 the hardest.
        mean: (g,) over all pairs in it; NaN where there is none.
        error: (g,) its standard error over anchors, for these negatives: pairs of an anchor are one observation.
            NaN with fewer than two anchors.
        pairs: (g,) int64: the number of pairs.

    Example: see `gradient_mass`.
    """

    low: Floats
    high: Floats
    mean: Floats
    error: Floats
    pairs: Whole

    __repr__ = short_repr


@final
@dataclass(frozen=True, slots=True)
class Dispersion:
    """A chi-square test of counts with equal expectation.

    Attributes:
        ratio: Statistic / degrees: 1 by chance, more if some negatives are hard for many anchors.
        statistic: Sum over negatives of (m - 1) / m (count - expected)^2 / variance.
        degrees: Degrees of freedom, m - 1; within classes, their sum.
        p_value: The probability of a statistic this large by chance.

    Example: see `consistency`.
    """

    ratio: float
    statistic: float
    degrees: int
    p_value: float


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Consistency:
    """How often each negative is hard.

    Attributes:
        counts: (m,) int64: the number of anchors for which it is hard.
        expected: (m,) the mean of its count if every anchor's hard negatives were shuffled among all of its negatives.
            If all anchors have all m, the shuffled count is exactly Binomial(n, floor(hard m) / m).
        variance: (m,) the variance of the shuffled count.
        anchors: n, the number of anchors.
        hard: The share of hard negatives.
        shuffled: The test against the null hypothesis that each anchor has random hard negatives, independently.
        within_class: The same, if an anchor's hard negatives are shuffled among those of the same class only: the
            effect that remains if an anchor prefers some classes. None without labels.

    Example: see `consistency`.
    """

    counts: Whole
    expected: Floats
    variance: Floats
    anchors: int
    hard: float
    shuffled: Dispersion
    within_class: Dispersion | None

    __repr__ = short_repr

    @property
    def rates(self) -> Floats:
        """(m,) the share of anchors for which each negative is hard; the mean is the hard share by definition."""
        return self.counts / max(self.anchors, 1)

    def always_hard(self, many: int = 10) -> Whole:
        """Return the negatives that are hard most often, of equal ones the first.

        Args:
            many: How many to return, at least 1.
        """
        most_often = np.argsort(-self.counts, kind="stable")
        return most_often[: check_whole("many", many, 1)]


# ---- measures -------------------------------------------------------------------------------------------------------


@public
def percentiles(scores: Any, mask: Any = None) -> Floats:
    """Return the percentile of each negative: the share of the anchor's negatives that are easier.

    Of equal scores the earlier slot counts as harder, so that a row of m has each of 0, 1/m, ... (m - 1)/m once.

    Args:
        scores: (B, K), a row for each anchor; finite where they count.
        mask: (B, K) bool, True where a slot counts (`Negatives.mask`); None: all do.

    Returns:
        (B, K) float64 from 0, the easiest, to below 1, the hardest; NaN where the mask is False.

    Examples:
        >>> percentiles([[0.1, 0.9, -0.5, 0.9]]).tolist()
        [[0.25, 0.75, 0.0, 0.5]]
    """
    pairs = rank_pairs(*read_scores("scores", scores, mask))
    size = pairs.sizes[pairs.anchors]
    found = np.full(pairs.shape, np.nan)
    found[pairs.anchors, pairs.slots] = (size - 1 - pairs.ranks) / size
    return found


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
    pairs = rank_pairs(*read_scores("scores", scores, mask))
    is_hard = pairs.among_hardest(hard_share)
    is_hardest = pairs.among_hardest(hardest_share)
    found = np.full(pairs.shape, -1, np.int8)
    found[pairs.anchors, pairs.slots] = is_hard.astype(np.int8) + is_hardest
    return found


@public
def same_class_share(scores: Any, labels: Any, negative_labels: Any, mask: Any = None, *, bins: int = BINS) -> Curve:
    """Return the share of negatives of the anchor's own class, which are false negatives, by percentile.

    Fig. 5a of Cai et al. (2020).

    Args:
        scores: (B, K), as in `percentiles`.
        labels: (B,) classes of the anchors.
        negative_labels: (K,) or (B, K) classes of the slots.
        mask: (B, K) bool, True where a slot counts (`Negatives.mask`); None: all do.
        bins: The number of intervals of percentiles, all of one width.

    Examples:
        >>> same_class_share([[0.9, 0.2], [0.1, 0.4]], [0, 1], [0, 1], bins=2).mean.tolist()
        [0.0, 1.0]
    """
    edges = even_edges(bins)
    pairs = rank_pairs(*read_scores("scores", scores, mask))
    own = read_labels("labels", labels, pairs.shape[0], "anchors")
    theirs = as_array("negative_labels", to_numpy(negative_labels))
    if theirs.shape == pairs.shape:
        theirs = read_labels("negative_labels", theirs.reshape(-1), theirs.size, "slots").reshape(theirs.shape)
    else:
        theirs = read_labels("negative_labels", theirs, pairs.shape[1], "negatives")
    return mean_curve(pairs, edges, own[pairs.anchors] == pairs.of_slots(theirs))


@public
def gradient_mass(scores: Any, mask: Any = None, *, temperature: float = TEMPERATURE, bins: int = BINS) -> Curve:
    """Return the share of the InfoNCE gradient in each interval of percentiles; an anchor's shares add up to 1.

    The gradient by the score of negative j is p_j / t, p_j = e^{s_j/t} / (e^{s+/t} + sum e^{s_i/t}). The positive
    scales all p_j of an anchor by one factor, so the shares are the softmax over the negatives alone.

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
    edges = even_edges(bins)
    t = check_temperature(temperature)
    pairs = rank_pairs(*read_scores("scores", scores, mask))
    return share_curve(pairs, edges, softmax_shares(pairs, t))


@public
def consistency(scores: Any, mask: Any = None, *, negative_labels: Any = None, hard: float = HARD) -> Consistency:
    """Count how often each negative is among an anchor's hardest, and test whether that is chance.

    Null hypothesis: each anchor's floor(hard m) hard negatives are a uniform choice among its m, independent of the
    other anchors. Then a count has mean n p and variance n p (1 - p), p = floor(hard m) / m, and the statistic of
    `Dispersion` has the mean m - 1 and is chi-square for many anchors. Counts have a larger variance if some negatives
    are hard for many anchors. A class with more anchors than others is enough for that; `within_class` removes this
    effect. The mean rate is the hard share by definition.

    Args:
        scores: (B, m), where column j is the same negative for all anchors.
        mask: (B, m) bool, True where a pair counts; None: all do.
        negative_labels: (m,) classes of the negatives, for the second test, or None.
        hard: The share of hard negatives; above 0 and below 1.

    Examples:
        >>> import numpy as np
        >>> found = consistency(np.tile([0.9, 0.1, 0.0, -0.3], (50, 1)), hard=0.25)
        >>> found.counts.tolist(), found.shuffled.ratio, found.shuffled.p_value < 1e-9
        ([50, 0, 0, 0], 50.0, True)
    """
    hard_share = check_hard(hard)
    pairs = rank_pairs(*read_scores("scores", scores, mask))
    classes = None
    if negative_labels is not None:
        classes = read_labels("negative_labels", negative_labels, pairs.shape[1], "negatives")
    return consistency_of(pairs, classes, hard_share)


@public
def common_depth(hierarchy: Any, first: Any, second: Any) -> Whole:
    """Return the depth of the least common ancestor of each class in `first` and each in `second`.

    Deeper is more similar: the ancestor of two equal classes is the class itself, that of unrelated ones the root. The
    captions of Figs. 4b and 5b in Cai et al. (2020) have it the other way round; their text agrees with this.

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
    rows = whole_numbers("first", to_numpy(first))
    columns = whole_numbers("second", to_numpy(second))
    parents = read_hierarchy(hierarchy)
    _check_in_tree("first", rows, parents)
    _check_in_tree("second", columns, parents)
    return _depth_table(parents, rows, columns)


# ---- pairs in the order of difficulty -------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """The p pairs of an anchor and a negative that count: anchor by anchor, the hardest negative first."""

    shape: tuple[int, int]  # (B, K) of the scores
    sizes: Whole  # (B,) how many negatives of each anchor count
    anchors: Whole  # (p,) the row of each pair
    slots: Whole  # (p,) the column of each pair
    ranks: Whole  # (p,) 0 for the hardest negative of an anchor
    scores: Floats  # (p,)

    def of_slots(self, values: NDArray[Any]) -> NDArray[Any]:
        """(p,) the value of each pair's negative; values are (K,) or (B, K)."""
        return np.asarray(values[self.slots] if values.ndim == 1 else values[self.anchors, self.slots])

    def among_hardest(self, share: float) -> Mask:
        """(p,) whether a pair is among the hardest `share` of its anchor's."""
        return np.asarray(self.ranks < hard_count(self.sizes, share)[self.anchors])

    def sum_by_anchor(self, values: NDArray[Any]) -> Floats:
        """(B,) the sums of values (p,) over the pairs of each anchor."""
        return sum_by_cell(self.anchors, values, self.shape[0])

    def sum_by_interval(self, edges: Floats, values: NDArray[Any]) -> tuple[Floats, Whole]:
        """(B, g) the sums of values (p,) in each interval of percentiles, and the number of pairs in it."""
        first_ranks = hard_count(self.sizes[:, None], 1.0 - edges)
        counts = first_ranks[:, :-1] - first_ranks[:, 1:]
        hardest_first = counts[:, ::-1]
        interval_of_pair = np.repeat(np.arange(counts.size), hardest_first.ravel())
        sums = sum_by_cell(interval_of_pair, values, counts.size)
        return sums.reshape(counts.shape)[:, ::-1], counts


def hard_count(sizes: Whole, share: Any) -> Whole:
    """How many of `sizes` negatives are the hardest `share` of them, rounded down."""
    return np.asarray(np.floor(share * sizes + _ROUNDING), np.int64)


def sum_by_cell(cells: Whole, values: NDArray[Any], many: int) -> Floats:
    """(many,) the sums of values (p,) over the pairs of each cell; cells (p,) are from 0 on."""
    return np.asarray(np.bincount(cells, values, minlength=many), np.float64)


def rank_pairs(scores: NDArray[Any], kept: Mask | None = None) -> Pairs:
    """Sort each row of scores (B, K), which are finite where they count."""
    rows, width = scores.shape
    keys = scores if kept is None else np.where(kept, scores, -np.inf)
    order = np.argsort(-keys, axis=1, kind="stable")
    sizes = np.full(rows, width) if kept is None else kept.sum(axis=1)
    anchors = np.repeat(np.arange(rows), sizes)
    first_pair = np.cumsum(sizes) - sizes
    ranks = np.arange(len(anchors)) - first_pair[anchors]
    slots = order[anchors, ranks]
    return Pairs((rows, width), sizes, anchors, slots, ranks, scores[anchors, slots].astype(np.float64))


def softmax_shares(pairs: Pairs, temperature: float) -> Floats:
    """(p,) e^{s/t} / sum e^{s/t} over the pairs of an anchor."""
    hardest_of_anchor = np.arange(len(pairs.ranks)) - pairs.ranks
    with np.errstate(over="ignore", under="ignore"):
        weights = np.exp((pairs.scores - pairs.scores[hardest_of_anchor]) / temperature)
    return np.asarray(weights / pairs.sum_by_anchor(weights)[pairs.anchors])


def band_edges(hard: float, hardest: float) -> Floats:
    """The percentiles at which the three bands begin and end."""
    return np.array([0.0, 1.0 - hard, 1.0 - hardest, 1.0])


def even_edges(bins: Any) -> Floats:
    """The ends of `bins` intervals of one width."""
    many = check_whole("bins", bins, 1, _MAX_BINS)
    return np.arange(many + 1) / many


def mean_curve(pairs: Pairs, edges: Floats, values: NDArray[Any]) -> Curve:
    """The mean of values (p,) over the pairs of each interval."""
    sums, counts = pairs.sum_by_interval(edges, values)
    return Curve(edges[:-1], edges[1:], *ratio_over_anchors(sums, counts), counts.sum(axis=0))


def share_curve(pairs: Pairs, edges: Floats, shares: Floats) -> Curve:
    """The mean over anchors of the sum of their shares (p,) in each interval."""
    sums, counts = pairs.sum_by_interval(edges, shares)
    has_negatives = np.broadcast_to(pairs.sizes[:, None] > 0, sums.shape).astype(np.int64)
    return Curve(edges[:-1], edges[1:], *ratio_over_anchors(sums, has_negatives), counts.sum(axis=0))


def ratio_over_anchors(parts: Floats, wholes: Whole) -> tuple[Floats, Floats]:
    """(g,) sum(part) / sum(whole) over the rows of (B, g), and its linearised standard error.

    The variance over the n rows that have something is n / (n - 1) sum (part - ratio whole)^2 / (sum whole)^2.
    """
    total = wholes.sum(axis=0)
    anchors = (wholes > 0).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = parts.sum(axis=0) / total
        squares = ((parts - ratio * wholes) ** 2).sum(axis=0)
        error = np.sqrt(squares * anchors / (anchors - 1)) / total
    return ratio, np.where(anchors > 1, error, np.nan)


# ---- which negatives are always hard --------------------------------------------------------------------------------


def consistency_of(pairs: Pairs, labels: Whole | None, hard: float) -> Consistency:
    """Count the hard pairs of each negative, and test the counts; labels (m,) are the classes of the negatives."""
    is_hard = pairs.among_hardest(hard)
    counts = np.bincount(pairs.slots[is_hard], minlength=pairs.shape[1])
    one_class = np.zeros(pairs.shape[1], np.int64)
    expected, variance = _chance_of_counts(pairs, is_hard, one_class)
    shuffled = _dispersion(counts, expected, variance, one_class)
    within_class = None
    if labels is not None:
        classes = np.unique(labels, return_inverse=True)[1]
        within_class = _dispersion(counts, *_chance_of_counts(pairs, is_hard, classes), classes)
    anchors = int(np.count_nonzero(pairs.sizes))
    return Consistency(frozen(counts), frozen(expected), frozen(variance), anchors, hard, shuffled, within_class)


def _chance_of_counts(pairs: Pairs, is_hard: Mask, classes: Whole) -> tuple[Floats, Floats]:
    """(m,) mean and variance of each count if an anchor's hard negatives were shuffled within each class."""
    many = int(classes.max(initial=0)) + 1
    anchor_and_class = pairs.anchors * many + classes[pairs.slots]
    cells = pairs.shape[0] * many
    alike = np.bincount(anchor_and_class, minlength=cells)
    hard_alike = np.bincount(anchor_and_class[is_hard], minlength=cells)
    chance = (hard_alike / np.maximum(alike, 1))[anchor_and_class]
    expected = sum_by_cell(pairs.slots, chance, len(classes))
    variance = sum_by_cell(pairs.slots, chance * (1 - chance), len(classes))
    return expected, variance


def _dispersion(counts: Whole, expected: Floats, variance: Floats, classes: Whole) -> Dispersion:
    """Test the counts (m,) within each class, without those that cannot vary."""
    from scipy.special import chdtrc

    varies = variance > _NO_VARIANCE
    varying_of_class = np.bincount(classes[varies])
    squares = (counts[varies] - expected[varies]) ** 2 / variance[varies]
    statistic = float((squares * (1 - 1 / varying_of_class[classes[varies]])).sum())
    degrees = int(np.maximum(varying_of_class - 1, 0).sum())
    if not degrees:
        return Dispersion(np.nan, np.nan, 0, np.nan)
    return Dispersion(statistic / degrees, statistic, degrees, float(chdtrc(degrees, statistic)))


# ---- the tree of classes --------------------------------------------------------------------------------------------


def depths_of_pairs(pairs: Pairs, parents: Whole, own: Whole, theirs: Whole) -> Whole:
    """(p,) the depth of the least common ancestor; own (B,) and theirs (K,) are the classes."""
    rows, row_of_anchor = np.unique(own, return_inverse=True)
    columns, column_of_slot = np.unique(theirs, return_inverse=True)
    depths = _depth_table(parents, rows, columns)
    return np.asarray(depths[row_of_anchor[pairs.anchors], column_of_slot[pairs.slots]])


def _depth_table(parents: Whole, first: NDArray[Any], second: NDArray[Any]) -> Whole:
    """(a, b) the depths of the least common ancestors."""
    rows = _paths_from_root(parents, first)
    columns = _paths_from_root(parents, second)
    depths = np.full((len(first), len(second)), -1, np.int64)
    for level in range(min(rows.shape[1], columns.shape[1])):
        ours = rows[:, level, None]
        theirs = columns[None, :, level]
        depths += (ours == theirs) & (ours >= 0)  # paths that part never meet again
    return depths


def _paths_from_root(parents: Whole, classes: NDArray[Any]) -> Whole:
    """(n, levels) the nodes from the root down to each class, then -1."""
    upwards = [classes.astype(np.int64)]
    while (upwards[-1] >= 0).any():
        below = upwards[-1]
        upwards.append(np.where(below >= 0, parents[below], -1))
    steps = np.stack(upwards, axis=1)
    lengths = (steps >= 0).sum(axis=1, keepdims=True)
    places = lengths - 1 - np.arange(steps.shape[1])
    return np.where(places >= 0, np.take_along_axis(steps, np.maximum(places, 0), axis=1), -1)


# ---- arguments ------------------------------------------------------------------------------------------------------


def read_scores(parameter: str, scores: Any, mask: Any = None) -> tuple[NDArray[Any], Mask | None]:
    """Return scores (B, K) as float32 or float64, finite where they count, and the mask."""
    array = as_array(parameter, to_numpy(scores))
    if array.ndim != 2:
        raise_invalid(parameter, "of shape (B, K), a row per anchor", f"shape {array.shape}")
    array, kept = as_scores(parameter, array), None
    if mask is not None:
        kept = as_array("mask", to_numpy(mask))
        if kept.shape != array.shape or kept.dtype != np.bool_:
            raise_invalid("mask", f"of shape {array.shape} and bool, like the scores", f"{kept.shape} {kept.dtype}")
    missing = ~np.isfinite(array) if kept is None else kept & ~np.isfinite(array)
    if missing.any():
        raise_invalid(parameter, "finite", first_bad(array, missing), "Leave out pairs that have no score.")
    return array, kept


def as_scores(parameter: str, array: NDArray[Any]) -> NDArray[Any]:
    """Return numbers as float32 if they are no wider, else as float64."""
    if array.dtype.kind not in "iuf":
        raise_invalid(parameter, "numbers", f"dtype {array.dtype}")
    check_exact(parameter, array)
    is_narrow = array.dtype.kind == "f" and array.dtype.itemsize <= 4
    return array.astype(np.float32 if is_narrow else np.float64, copy=False)


def read_labels(parameter: str, labels: Any, size: int, of: str, parents: Whole | None = None) -> Whole:
    """Return classes (size,) as int64, from 0 on, and in the tree if there is one."""
    array = whole_numbers(parameter, to_numpy(labels))
    if len(array) != size:
        raise_invalid(parameter, f"one for each of the {size} {of}", f"{len(array)}")
    check_all(parameter, array, array >= 0, "0 or more", "Leave out what has no class.")
    if parents is not None:
        _check_in_tree(parameter, array, parents)
    return array.astype(np.int64)


def read_hierarchy(hierarchy: Any) -> Whole:
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
    ancestor = np.where(parents < 0, np.arange(size), parents)
    for _ in range(size.bit_length()):
        ancestor = ancestor[ancestor]  # twice as far up; at the end this is the root, or in a cycle
    lost = np.flatnonzero(~np.isin(ancestor, roots))
    if len(lost):
        raise_invalid("hierarchy", "without a cycle", f"a cycle above class {lost[0]}")
    return parents


def _check_in_tree(parameter: str, labels: NDArray[Any], parents: Whole) -> None:
    """Raise if a class is not in the tree."""
    check_range(parameter, labels, len(parents), "classes and groups in `hierarchy`")


def check_shares(hard: Any, hardest: Any) -> tuple[float, float]:
    """Return the shares of the hard (with the hardest) and of the hardest negatives."""
    hard_share = check_hard(hard)
    return hard_share, check_number("hardest", hardest, at_least=0, below=hard_share, advice="`hard` includes it.")


def check_hard(hard: Any) -> float:
    """Return the share of hard negatives, above 0 and below 1."""
    return check_number("hard", hard, above=0, below=1, advice="0.05 is the hardest 5 %.")


def check_temperature(temperature: Any) -> float:
    """Return a finite number above 0."""
    return check_number("temperature", temperature, above=0, finite=True)
