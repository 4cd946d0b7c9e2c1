"""Whether the same negatives are hard for many anchors, against a shuffled baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import frozen
from naysay.checks import check_whole, public
from naysay.difficulty.curves import HARD, Floats, Ranked, check_hard, cut, rank, read_labels, read_scores
from naysay.kernels import percentiles as kernels
from naysay.kernels.threads import in_rows
from naysay.text import short_repr


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

    counts: NDArray[np.int64]
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

    def always_hard(self, many: int = 10) -> NDArray[np.int64]:
        """Return the negatives that are hard most often, of equal ones the first.

        Args:
            many: How many to return, at least 1.
        """
        return np.argsort(-self.counts, kind="stable")[: check_whole("many", many, 1)]


@final
class HardCounts:
    """Hard negatives counted over blocks of anchors; classes (m,) from 0 on, all 0 where there are none."""

    def __init__(self, classes: NDArray[np.int64], many: int, hard: float) -> None:
        """`many` classes, and the hard share."""
        self.classes, self.hard = classes, hard
        self.sizes = np.bincount(classes, minlength=many)
        self.tally = np.zeros(len(classes), np.int64)
        self.chances = np.zeros((1, 2, many + 1))  # sums of p and p (1 - p) by class; the last column is for all
        self.missing = np.zeros((4, len(classes)))  # the same for pairs that do not count: of all, and of the class
        self.anchors = 0

    def add(self, ranked: Ranked, sums: Floats) -> None:
        """A block, and its `class_sums` (B, 4, classes)."""
        kernels.add_hard(ranked.order, ranked.counts, self.hard, self.tally)
        every = cut(ranked.counts, self.hard) / np.maximum(ranked.counts, 1)
        chance = np.concatenate([sums[:, 1] / np.maximum(sums[:, 0], 1), every[:, None]], axis=1)
        both = np.stack([chance, chance * (1 - chance)], axis=1)
        kernels.add_rows(np.zeros(len(both), np.int64), both, self.chances)
        self.anchors += int(np.count_nonzero(ranked.counts))
        if ranked.kept is not None:
            rows, slots = np.nonzero(~ranked.kept)
            for place, values in enumerate((both[rows, 0, -1], both[rows, 1, -1])):
                np.add.at(self.missing[place], slots, values)
            for place, values in enumerate(both[rows, :, self.classes[slots]].T, start=2):
                np.add.at(self.missing[place], slots, values)

    def result(self, *, labelled: bool) -> Consistency:
        """Return the counts and tests; `labelled`: with the test within classes."""
        of_class, of_all = self.chances[0, :, :-1], self.chances[0, :, -1:]
        expected, variance = of_all - self.missing[:2]
        one = np.zeros(len(self.classes), np.int64)
        shuffled = dispersion(self.tally, expected, variance, one, np.array([len(one)]))
        inner = of_class[:, self.classes] - self.missing[2:]
        within = dispersion(self.tally, inner[0], inner[1], self.classes, self.sizes) if labelled else None
        tally, mean, spread = (frozen(part) for part in (self.tally, expected, variance))
        return Consistency(tally, mean, spread, self.anchors, self.hard, shuffled, within)


@public
def consistency(scores: Any, mask: Any = None, *, negative_labels: Any = None, hard: float = HARD) -> Consistency:
    """Count how often each negative is among an anchor's hardest, and test whether that is chance.

    Null hypothesis: each anchor's floor(hard m) hard negatives are a uniform choice among its m, independent of the
    other anchors.
    Then a count has mean n p and variance n p (1 - p), p = floor(hard m) / m, and two counts have the covariance
    -n p (1 - p) / (m - 1); so the statistic of `Dispersion` has the mean m - 1 exactly, and for many anchors is
    chi-square of m - 1 degrees. Counts have a larger variance if some negatives are hard for many anchors and others
    for none. A class with more anchors than others is enough for that; `within_class` removes this effect. The MEAN
    rate is the hard share by definition; the paper, below its Fig. 6, states that of the median.

    Cost: O(B m).

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
    ranked = rank(*read_scores(scores, mask))
    width = ranked.order.shape[1]
    classes = np.zeros(width, np.int64)
    if negative_labels is not None:
        given = read_labels("negative_labels", negative_labels, width, "negatives")
        classes = np.unique(given, return_inverse=True)[1]
    many = int(classes.max(initial=0)) + 1
    counts = HardCounts(classes, many, hard_share)
    counts.add(ranked, class_sums(ranked, classes, many, hard_share))
    return counts.result(labelled=negative_labels is not None)


def class_sums(ranked: Ranked, classes: NDArray[np.int64], many: int, hard: float) -> Floats:
    """(B, 4, classes) of each row and class of negatives: how many, how many hard, sum of scores, how many below 0."""
    rows, width = ranked.order.shape
    out = np.empty((rows, 4, many))
    arguments = (ranked.scores, ranked.order, ranked.counts, hard, classes, out)
    in_rows(kernels.class_sums, rows, rows * (width + many), *arguments)
    return out


def dispersion(
    counts: NDArray[np.int64], expected: Floats, variance: Floats, classes: NDArray[np.int64], sizes: NDArray[np.int64]
) -> Dispersion:
    """Return the test, without negatives of variance 0 and those alone in their class."""
    from scipy.special import chdtrc

    free = (variance > 1e-9) & (sizes[classes] > 1)
    size = np.bincount(classes[free], minlength=len(sizes))
    gaps = (counts[free] - expected[free]) ** 2 / variance[free]
    statistic = float((gaps * (1 - 1 / size[classes[free]])).sum())
    degrees = int(np.maximum(size - 1, 0).sum())
    if not degrees:
        return Dispersion(np.nan, np.nan, 0, np.nan)
    return Dispersion(statistic / degrees, statistic, degrees, float(chdtrc(degrees, statistic)))
