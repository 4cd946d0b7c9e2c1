"""How good is a detector, where the truth about its slots is known, or the classes of all samples.

Chen et al. Incremental False Negative Detection for Contrastive Learning. ICLR 2022, has the mean rates over anchors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from naysay._intervals import CONFIDENCE, exact_interval
from naysay.arrays import Floats, to_numpy
from naysay.checks import as_array, check_all, check_whole, first_bad, public, raise_invalid, whole_numbers
from naysay.detectors._suspicion import (
    Truth,
    check_confidence,
    check_query_and_negatives,
    check_threshold,
    slot_truth,
    suspicion_of,
    threshold_of,
)
from naysay.detectors.rate import effective_size
from naysay.types import Detector, Negatives, Query

_MOST_BINS = 1_000_000


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
    (`effective_size`), because slots of one anchor tend to be right or wrong together.

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
    mtpr_interval: tuple[float, float]
    mtnr_interval: tuple[float, float]
    precision_interval: tuple[float, float]
    recall_interval: tuple[float, float]
    confidence: float
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
        return (
            f"{self.slots:,} candidates of {self.anchors:,} anchors; false negatives: {self.false_negatives:,}; "
            f"flagged: {self.flagged:,} (suspicion >= {self.threshold:g}). {rates[0]}, {rates[1]}; over all slots "
            f"{rates[2]}, {rates[3]}; {self.confidence:.0%} CIs. Expected calibration error "
            f"{self.reliability.error:.3f}."
        )


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
) -> Evaluation:
    """Evaluate a detector on candidates of which the truth is known. All filled slots count.

    Args:
        detector: The detector.
        query: The query of the candidates.
        negatives: The candidates.
        truth: One of: (B, K) bool, whether a slot holds a false negative; a function truth(anchors (B,), ids (B, K)) ->
            (B, K) bool, called in NumPy and never with -1 (for triples pass a table, because the function does not get
            the side); (n_samples,) whole numbers, the class of each sample, where a candidate of the anchor's class is
            a false negative and -1 is an unknown class.
        threshold: A slot is flagged if its suspicion is at least this; by default the detector's own, 0.5 for most.
        bins: The number of bins of the reliability curve.
        confidence: The confidence of the intervals. They hold for anchors that differ as much as all anchors do.

    Raises:
        NaysayError: If no slot is of known truth.

    Examples:
        >>> import naysay as ns
        >>> negatives = ns.Negatives(np.array([[1, 2], [2, 0]]), scores=np.array([[0.9, 0.1], [0.2, 0.3]]))
        >>> rates = evaluate(ns.detectors.MaxScore(0.5), ns.Query([0, 1]), negatives, np.array([0, 0, 1]))
        >>> rates.mtpr, rates.mtnr
        (0.5, 1.0)
    """
    check_query_and_negatives(query, negatives)
    n_bins = check_whole("bins", bins, 1, _MOST_BINS)
    level = check_confidence(confidence)
    limit = threshold_of(detector) if threshold is None else check_threshold(threshold)
    suspicion = suspicion_of("detector", detector, query, negatives)
    known = slot_truth(query, negatives, truth)
    if not known.known.any():
        raise_invalid("truth", "known for at least one slot", "none")
    flagged = (suspicion >= limit) & known.known
    slots, false, suspects = (part.sum(axis=1) for part in (known.known, known.false, flagged))
    hits = (flagged & known.false).sum(axis=1)
    true = slots - false
    kept = true - (suspects - hits)
    # Of each row: the part that is right, and of how much; and the number of slots behind the rate.
    counts = {
        "mtpr": (hits / np.maximum(false, 1), false > 0, false.sum()),
        "mtnr": (kept / np.maximum(true, 1), true > 0, true.sum()),
        "precision": (hits, suspects, suspects.sum()),
        "recall": (hits, false, false.sum()),
    }
    rates: dict[str, Any] = {}
    for name, (part, whole, size) in counts.items():
        rates[name] = float(part.sum() / whole.sum()) if whole.sum() else np.nan
        n = effective_size(part, whole, int(size), (1 - level) / 2)
        rates[f"{name}_interval"] = exact_interval(rates[name] * n, n, level) if n else (0.0, 1.0)
    return Evaluation(
        **rates,
        confidence=level,
        reliability=_reliability(suspicion[known.known], known.false[known.known], n_bins),
        threshold=limit,
        anchors=int((slots > 0).sum()),
        anchors_with_false=int((false > 0).sum()),
        anchors_with_true=int((true > 0).sum()),
        slots=int(slots.sum()),
        false_negatives=int(false.sum()),
        flagged=int(suspects.sum()),
    )


def _reliability(suspicion: Floats, false: NDArray[np.bool_], n_bins: int) -> Reliability:
    """The bins of (n,) suspicions."""
    place = np.minimum((suspicion * n_bins).astype(np.int64), n_bins - 1)
    count = np.bincount(place, minlength=n_bins)
    total = np.bincount(place, suspicion, n_bins)
    hits = np.bincount(place, false.astype(np.float64), n_bins)
    with np.errstate(invalid="ignore"):
        means, observed = total / count, hits / count
    return Reliability(count, means, observed, float(np.abs(hits - total).sum() / count.sum()))


# ---- classes of all samples -----------------------------------------------------------------------------


@final
@public
@dataclass(frozen=True, slots=True)
class DetectionRates:
    """The result of `detection_rates`: a float each, or (G,) for G granularities. NaN without such samples.

    Args:
        true_positive: MTPR: the share of samples of the anchor's class that have its label, averaged over anchors whose
            class has other samples.
        true_negative: MTNR: the share of samples of other classes that do not have its label, averaged over anchors.
    """

    true_positive: Any
    true_negative: Any


@public
def detection_rates(labels: ArrayLike, classes: ArrayLike) -> DetectionRates:
    """Compute MTPR and MTNR of pseudo-labels, exact over all pairs of samples, in O(n log n) a granularity.

    A pair is flagged if both have the same label; -1 matches nothing. Without any label the rates are 0 and 1.

    Args:
        labels: (n,) or (G, n), -1 for none.
        classes: (n,) the true classes, from 0.

    Returns:
        Both rates.

    Examples:
        >>> detection_rates([0, 0, 0, -1], [7, 7, 8, 8])
        DetectionRates(true_positive=0.5, true_negative=0.5)
    """
    given = as_array("labels", to_numpy(labels))
    if given.ndim not in (1, 2) or given.size == 0:
        raise_invalid("labels", "of shape (n,) or (granularities, n), not empty", f"shape {given.shape}")
    given = whole_numbers("labels", given, "(n,)" if given.ndim == 1 else "(G, n)").astype(np.int64, copy=False)
    if given.min() < -1:
        raise_invalid("labels", "at least -1", first_bad(given, given < -1), "-1 is no label.")
    truth = whole_numbers("classes", to_numpy(classes))
    check_all("classes", truth, truth >= 0, "at least 0")
    if given.shape[-1] != len(truth):
        raise_invalid("classes", f"of shape ({given.shape[-1]},), like labels", f"shape {truth.shape}")
    rates = np.array([_rates(ours, truth) for ours in np.atleast_2d(given)])
    return DetectionRates(*(rates[0].tolist() if given.ndim == 1 else rates.T))


def _rates(labels: NDArray[np.int64], classes: NDArray[Any]) -> tuple[float, float]:
    """Both rates of one granularity."""
    _, label, label_sizes = np.unique(labels, return_inverse=True, return_counts=True)
    _, kind, class_sizes = np.unique(classes, return_inverse=True, return_counts=True)
    _, pair, pair_sizes = np.unique(label * len(class_sizes) + kind, return_inverse=True, return_counts=True)
    n_same_label, n_same_class, n_same_both = label_sizes[label], class_sizes[kind], pair_sizes[pair]
    others_of_class, of_other_classes = n_same_class - 1, len(labels) - n_same_class
    found = np.where(labels >= 0, n_same_both - 1, 0)[others_of_class > 0] / others_of_class[others_of_class > 0]
    wrong = np.where(labels >= 0, n_same_label - n_same_both, 0)[of_other_classes > 0]
    wrong = wrong / of_other_classes[of_other_classes > 0]
    true_positive = float(found.mean()) if found.size else np.nan
    true_negative = 1.0 - float(wrong.mean()) if wrong.size else np.nan
    return true_positive, true_negative
