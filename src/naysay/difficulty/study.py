"""All measures of difficulty in one pass over anchors, in a given memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np

from naysay.checks import check_one_of, check_whole, public
from naysay.difficulty._study_inputs import (
    METRICS,
    Classes,
    Source,
    check_exclude,
    classes_of,
    kept_pairs,
    names_of,
    other_source,
    rows_of,
    source_of,
)
from naysay.difficulty.class_pairs import mean_table
from naysay.difficulty.consistency import HardCounts, class_sums
from naysay.difficulty.curves import (
    BINS,
    HARD,
    HARDEST,
    TEMPERATURE,
    CurveSums,
    Ranked,
    check_shares,
    check_temperature,
    even_intervals,
    rank,
)
from naysay.difficulty.drift import agreement, summary
from naysay.difficulty.measures import softmax_weights
from naysay.difficulty.result import Profile, Study
from naysay.kernels import percentiles as kernels
from naysay.positives import Positives

_BUDGET = 1 << 28


@public
def study(
    anchors: Any,
    negatives: Any,
    *,
    labels: Any = None,
    negative_labels: Any = None,
    hierarchy: Any = None,
    names: Sequence[str] | None = None,
    exclude: Positives | None = None,
    other: tuple[Any, Any] | None = None,
    metric: str = "cosine",
    temperature: float = TEMPERATURE,
    bins: int = BINS,
    hard: float = HARD,
    hardest: float = HARDEST,
    budget: int = _BUDGET,
) -> Study:
    """Compute all measures of difficulty, of every anchor against every negative.

    A score of vectors is the float64 sum over the coordinates in order, rounded to float32, and all sums run in one
    order: the result is the same for every budget and number of threads (for a function, if its rows are).

    Cost: O(n m d) for scores and O(n m) for the rest; each row is sorted once.

    Cai, Frankle, Schwab, Morcos. Are All Negatives Created Equal in Contrastive Instance Discrimination? 2020.

    Args:
        anchors: (n, d) vectors; NumPy, also mapped from a file, or torch.
        negatives: (m, d) vectors, or a function of a block of `anchors` (b, ...) that returns scores (b, m).
        labels: (n,) classes of the anchors, from 0 on.
        negative_labels: (m,) classes of the negatives.
        hierarchy: (nodes,) the parent of each class and group of classes, -1 for the root (`common_depth`).
        names: The names of the classes, by label.
        exclude: Pairs (anchor, negative) that do not count, with ignored ones: an anchor that is among the negatives,
            and its positives.
        other: (anchors, negatives) of another checkpoint, for the drift.
        metric: "cosine" or "dot", for vectors.
        temperature: Of InfoNCE, for the gradient.
        bins: The number of intervals of percentiles.
        hard: The share of hard negatives, with the hardest.
        hardest: The share of the hardest.
        budget: Bytes of memory that the call may use beside its arguments; it only affects how many anchors are
            scored at a time.

    Raises:
        NaysayError: If shapes or classes do not fit, a vector is zero or not finite, an option is out of range, or the
            budget is too small.

    Examples:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> found = study(rng.standard_normal((50, 8)), rng.standard_normal((40, 8)), hard=0.1, hardest=0.025, bins=4)
        >>> found.by_band.score.mean.round(2).tolist(), found.by_band.score.pairs.tolist()
        ([-0.07, 0.54, 0.7], [1800, 150, 50])
    """
    check_one_of("metric", metric, METRICS)
    hard_share, hardest_share = check_shares(hard, hardest)
    checked_temperature, parts = check_temperature(temperature), check_whole("bins", bins, 1)
    memory = check_whole("budget", budget, 1)
    first = source_of(anchors, negatives, metric, memory)
    second = other_source(first, other, metric, memory)
    classes = classes_of(first, labels, negative_labels, hierarchy)
    called = names_of(names, classes)
    check_exclude(exclude, first)
    rows = rows_of(memory, first, second, classes, parts)
    sums = _Sums(first, classes, parts, hard_share, hardest_share, checked_temperature)
    correlations, overlaps, counts = np.empty(first.n), np.empty(first.n), np.empty(first.n, np.int64)
    for start in range(0, first.n, rows):
        stop = min(start + rows, first.n)
        kept = kept_pairs(exclude, start, stop, first.m)
        ranked = rank(first.block(start, stop), kept)
        sums.add(ranked, slice(start, stop))
        counts[start:stop] = ranked.counts
        if second is not None:
            again = rank(second.block(start, stop), kept)
            correlations[start:stop], overlaps[start:stop] = agreement(ranked, again, hard_share)
    drift = None if second is None else summary(correlations, overlaps, counts, hard_share)
    return Study(
        anchors=first.n,
        negatives=first.m,
        pairs=int(counts.sum()),
        hard=hard_share,
        hardest=hardest_share,
        temperature=checked_temperature,
        metric="given" if callable(negatives) else metric,
        by_band=sums.profile(slice(parts, parts + 3)),
        by_percentile=sums.profile(slice(0, parts)),
        gaps={name: sums.curves[name].gap() for name in sums.known},
        consistency=sums.hard.result(labelled=classes is not None),
        class_pairs=None if classes is None else mean_table(classes.labels, sums.pairs),
        drift=drift,
        names=called,
    )


@final
class _Sums:
    """The sums of all measures over blocks of anchors."""

    def __init__(
        self, source: Source, classes: Classes | None, bins: int, hard: float, hardest: float, temperature: float
    ) -> None:
        bands = [(0.0, 1 - hard), (1 - hard, 1 - hardest), (1 - hardest, 1.0), (1 - hard, 1.0)]
        groups = [*even_intervals(bins), *bands]
        self.classes, self.temperature = classes, temperature
        self.depths = None if classes is None else classes.depths()
        self.known = [] if classes is None else ["same_class"] if self.depths is None else ["same_class", "depth"]
        compared = (bins, bins + 3)
        self.curves = {name: CurveSums(groups, compared=compared) for name in ("score", "below_zero", *self.known)}
        self.curves["gradient"] = CurveSums(groups, shares=True)
        theirs, many = (np.zeros(source.m, np.int64), 1) if classes is None else (classes.theirs, len(classes.labels))
        self.hard = HardCounts(theirs, many, hard)
        self.pairs = np.zeros((many, 4, many))  # the sums of `class_sums` by class of the anchors

    def add(self, ranked: Ranked, block: slice) -> None:
        """Add a block of anchors."""
        self.curves["score"].add(ranked, ranked.scores)
        self.curves["below_zero"].add(ranked, ranked.scores < 0)
        self.curves["gradient"].add(ranked, softmax_weights(ranked, self.temperature))
        by_class = class_sums(ranked, self.hard.classes, len(self.hard.sizes), self.hard.hard)
        self.hard.add(ranked, by_class)
        if self.classes is None:
            return
        own, theirs = self.classes.own[block], self.classes.theirs
        kernels.add_rows(own, by_class, self.pairs)
        self.curves["same_class"].add(ranked, own[:, None] == theirs)
        if self.depths is not None:
            self.curves["depth"].add(ranked, self.depths[own].take(theirs, axis=1))

    def profile(self, groups: slice) -> Profile:
        found = {name: sums.curve(groups) for name, sums in self.curves.items()}
        same, depth = found.get("same_class"), found.get("depth")
        return Profile(found["score"], found["below_zero"], found["gradient"], same, depth)
