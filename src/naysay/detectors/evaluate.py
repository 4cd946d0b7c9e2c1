"""Measure a detector where it is known which candidates are false negatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._lock import Lock
from naysay.arrays import Floats
from naysay.checks import check_bool, check_number, check_whole, public, raise_invalid
from naysay.detectors._slots import (
    SUSPICION_THRESHOLD,
    Truth,
    check_query_and_negatives,
    slot_truth,
    suspicion_of,
    threshold_of,
)
from naysay.detectors.rate import CONFIDENCE, check_confidence, effective_size, exact_interval, moments
from naysay.text import described
from naysay.types import Detector, Negatives, Query

Interval = tuple[float, float]
MOST_BINS = 1_000_000


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Reliability:
    """Suspicion against the observed share of false negatives, in bins of equal width from 0 to 1.

    An edge belongs to the bin above it, 1 to the last bin. The error tells whether suspicion can be used as a
    probability, as `reweight` does.

    Naeini, Cooper and Hauskrecht. Obtaining Well Calibrated Probabilities Using Bayesian Binning. AAAI 2015.

    Args:
        count: (bins,) the number of slots in each bin.
        suspicion: (bins,) their mean suspicion; NaN in an empty bin.
        observed: (bins,) the share of them that are false negatives; NaN in an empty bin.
        error: The expected calibration error: the mean over slots of |observed - suspicion| of their bin.
    """

    count: NDArray[np.int64]
    suspicion: Floats
    observed: Floats
    error: float

    def __str__(self) -> str:
        """A table of the bins that hold slots."""
        edges = np.linspace(0, 1, len(self.count) + 1)
        lines = ["from   to     slots  suspicion  observed"]
        for place in np.flatnonzero(self.count):
            shares = f"{self.suspicion[place]:>9.3f} {self.observed[place]:>9.3f}"
            lines.append(f"{edges[place]:.2f} {edges[place + 1]:.2f} {self.count[place]:>9,} {shares}")
        return "\n".join(lines)


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """How often a detector is right. Rates are NaN, with the interval (0, 1), where nothing could be counted.

    The intervals are Clopper and Pearson's at the effective number of independent observations of the anchors
    (`rate.effective_size`), because slots of one anchor tend to be right or wrong together.

    Args:
        mtpr: Mean true positive rate: the mean of P(flagged | false negative) over anchors that have a false negative.
        mtnr: Mean true negative rate: the mean of P(kept | true negative) over anchors that have a true negative.
        precision: The share of false negatives among the flagged slots.
        recall: The share of flagged slots among the false negatives: like mtpr, but weighted by their number.
        mtpr_interval: (low, high) of mtpr.
        mtnr_interval: (low, high) of mtnr.
        precision_interval: (low, high) of precision.
        recall_interval: (low, high) of recall.
        confidence: The confidence of the intervals.
        representative_anchors: Whether these anchors were taken as representative of all.
        reliability: Suspicion against the observed share of false negatives, and the expected calibration error.
        threshold: A slot is flagged if its suspicion is at least this.
        anchors: The number of rows with a slot of known truth. An anchor that occurs in two rows counts twice.
        anchors_with_false: The number of those with a false negative, for mtpr.
        anchors_with_true: The number of those with a true negative, for mtnr.
        slots: The number of slots of known truth.
        false_negatives: How many of the slots are false negatives.
        flagged: How many of the slots are flagged.
    """

    mtpr: float
    mtnr: float
    precision: float
    recall: float
    mtpr_interval: Interval
    mtnr_interval: Interval
    precision_interval: Interval
    recall_interval: Interval
    confidence: float
    representative_anchors: bool
    reliability: Reliability
    threshold: float
    anchors: int
    anchors_with_false: int
    anchors_with_true: int
    slots: int
    false_negatives: int
    flagged: int

    def __str__(self) -> str:
        """All rates and counts in one paragraph."""
        missing = {
            "mtpr": "no anchor has a false negative",
            "mtnr": "no anchor has a true negative",
            "precision": "nothing is flagged",
            "recall": "there is no false negative",
        }
        rates = []
        for name, why in missing.items():
            share, (low, high) = getattr(self, name), getattr(self, f"{name}_interval")
            shown = f"{100 * share:.1f} % ({100 * low:.1f} to {100 * high:.1f})"
            title = name.upper() if name.startswith("mt") else name
            rates.append(f"{title} is not defined ({why})" if np.isnan(share) else f"{title} {shown}")
        counted = "" if self.representative_anchors else ", one observation per anchor"
        return (
            f"{self.slots:,} candidates of {self.anchors:,} anchors; false negatives: {self.false_negatives:,}; "
            f"flagged: {self.flagged:,} (suspicion >= {self.threshold:g}). {rates[0]}, {rates[1]}; over all slots "
            f"{rates[2]}, {rates[3]}; {self.confidence:.0%} CIs{counted}. Expected calibration error "
            f"{self.reliability.error:.3f}."
        )


@final
@public
class Scoreboard:
    """Evaluate a detector over many batches. Memory does not grow with their number.

    Args:
        threshold: A slot is flagged if its suspicion is at least this; by default the detector's own, 0.5 for most.
        bins: The number of bins of the reliability curve.
        confidence: The confidence of the intervals.
        representative_anchors: Whether the spread among these anchors is that among all anchors. False treats each
            anchor as one observation: wider intervals, which for mtpr and mtnr, where all anchors have equal weight,
            hold for any anchors. For recall and precision an anchor with very many slots may still be missing.

    Examples:
        >>> import naysay as ns
        >>> world = ns.planted_world(n_anchors=200, n_items=100, per_anchor=10)
        >>> class Close:
        ...     def suspicion(self, query, negatives):
        ...         return np.clip(world.scores(query.anchors, negatives.ids), 0, 1).astype(float)
        >>> board = Scoreboard(threshold=0.3)
        >>> for step in range(4):
        ...     query = ns.Query(np.arange(50 * step, 50 * step + 50))
        ...     drawn = ns.pools.Everything(world.known).draw(query, 20, rng=ns.rng_for(0, step))
        ...     board.add(Close(), query, drawn, world.is_false_negative)
        >>> result = board.result()
        >>> result.slots, result.anchors, round(result.mtpr, 2), round(result.mtnr, 2)
        (4000, 200, 0.64, 0.74)
    """

    def __init__(
        self,
        *,
        threshold: float | None = None,
        bins: int = 10,
        confidence: float = CONFIDENCE,
        representative_anchors: bool = True,
    ) -> None:
        self.threshold = None if threshold is None else check_threshold(threshold)
        self._used = SUSPICION_THRESHOLD  # the last detector's own, if `threshold` is None
        self.bins = check_whole("bins", bins, 1, MOST_BINS)
        self.confidence = check_confidence(confidence)
        self.representative_anchors = check_bool("representative_anchors", representative_anchors)
        self._lock = Lock()
        # Moments of mtpr, mtnr, precision and recall; anchors, slots, false negatives, flagged; sums by bin.
        self._sums = np.zeros((4, 6)), np.zeros(4, np.int64), np.zeros((3, self.bins))

    def add(self, detector: Detector, query: Query, negatives: Negatives, truth: Truth) -> None:
        """Score one batch with the detector and count where it is right. O(B K).

        All filled slots count, whatever their relation.

        Args:
            detector: The detector.
            query: The query of the batch.
            negatives: The candidates of the batch.
            truth: One of: (B, K) bool, whether a slot holds a false negative; a function truth(anchors (B,), ids (B,
                K)) -> (B, K) bool, called in NumPy and never with -1 (for triples pass a table, because the function
                does not get the side); (n_samples,) whole numbers, the class of each sample, where a candidate of the
                anchor's class is a false negative and -1 is an unknown class.
        """
        check_query_and_negatives(query, negatives)
        suspicion = suspicion_of("detector", detector, query, negatives)
        known = slot_truth(query, negatives, truth)
        limit = threshold_of(detector) if self.threshold is None else self.threshold
        flagged = (suspicion >= limit) & known.known
        slots, false, suspects = (part.sum(axis=1) for part in (known.known, known.false, flagged))
        hits = (flagged & known.false).sum(axis=1)
        true = slots - false
        kept = true - (suspects - hits)
        part = np.stack([hits / np.maximum(false, 1), kept / np.maximum(true, 1), hits, hits])
        whole = np.stack([false > 0, true > 0, suspects, false])
        counts = np.array([(slots > 0).sum(), slots.sum(), false.sum(), suspects.sum()])
        given, hit = suspicion[known.known], known.false[known.known].astype(np.float64)
        place = np.minimum((given * self.bins).astype(np.int64), self.bins - 1)
        bins = np.stack([np.bincount(place, weight, self.bins) for weight in (None, given, hit)])
        with self._lock:  # sums are replaced, so that one that was read stays as it is
            shares, before, curve = self._sums
            self._sums = shares + moments(part, whole), before + counts, curve + bins
            self._used = limit

    def result(self) -> Evaluation:
        """Return the evaluation of all batches so far. Raises NaysayError if no slot of known truth was added."""
        sums, counts, (count, suspicion, hits) = self._sums
        anchors, slots, false, flagged = counts.tolist()
        if not slots:
            advice = "Add batches with filled slots of known truth."
            raise_invalid("slots", "at least one of known truth", 0, advice)
        sizes = {"mtpr": false, "mtnr": slots - false, "precision": flagged, "recall": false}
        rates: dict[str, Any] = {}
        for (name, size), share in zip(sizes.items(), sums, strict=True):
            rates[name] = float(share[2] / share[1]) if share[1] else np.nan
            representative = self.representative_anchors
            n = effective_size(share, size, (1 - self.confidence) / 2, representative_anchors=representative)
            rates[f"{name}_interval"] = exact_interval(rates[name] * n, n, self.confidence) if n else (0.0, 1.0)
        with np.errstate(invalid="ignore"):
            means, observed = suspicion / count, hits / count
        error = float(np.abs(hits - suspicion).sum() / count.sum())
        return Evaluation(
            **rates,
            confidence=self.confidence,
            representative_anchors=self.representative_anchors,
            reliability=Reliability(count.astype(np.int64), means, observed, error),
            threshold=self._used,
            anchors=anchors,
            anchors_with_false=int(sums[0, 0]),
            anchors_with_true=int(sums[1, 0]),
            slots=slots,
            false_negatives=false,
            flagged=flagged,
        )

    def __repr__(self) -> str:
        anchors, slots, *_ = self._sums[1].tolist()
        return described(self, f"{slots:,} slots of {anchors:,} anchors")


@public
def evaluate(
    detector: Detector,
    query: Query,
    negatives: Negatives,
    truth: Truth,
    *,
    threshold: float | None = None,
    bins: int = 10,
    confidence: float = CONFIDENCE,
    representative_anchors: bool = True,
) -> Evaluation:
    """Evaluate a detector on one batch. See `Scoreboard` and `Scoreboard.add` for the arguments.

    The mean rates over anchors are those of Chen et al. Incremental False Negative Detection for Contrastive Learning.
    ICLR 2022.

    Examples:
        >>> import naysay as ns
        >>> class Never:
        ...     def suspicion(self, query, negatives):
        ...         return np.zeros(negatives.shape)
        >>> rates = evaluate(Never(), ns.Query([0, 1]), ns.Negatives(np.array([[1, 2], [2, 0]])), np.array([0, 0, 1]))
        >>> rates.mtpr, rates.mtnr
        (0.0, 1.0)
    """
    board = Scoreboard(
        threshold=threshold, bins=bins, confidence=confidence, representative_anchors=representative_anchors
    )
    board.add(detector, query, negatives, truth)
    return board.result()


def check_threshold(threshold: Any) -> float:
    """Check a suspicion above 0: at 0 everything would be flagged, empty slots too."""
    return check_number("threshold", threshold, above=0, at_most=1)
