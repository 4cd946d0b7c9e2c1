"""Compare pseudo-labels with true classes: mutual information, and the false negatives that they find."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, check_all, check_one_of, first_bad, public, raise_invalid, whole_numbers

AVERAGES = ("geometric", "arithmetic")


@public
def normalised_mutual_information(labels: ArrayLike, classes: ArrayLike, *, average: str = "geometric") -> Any:
    """Compute I(labels; classes) / mean(H(labels), H(classes)): 0 for independent labels, 1 for equal partitions.

    Samples with -1 on either side are left out; the result is 0 if none remain, and 1 if both sides have one value. For
    the quality of whole clusterings, as in the paper's Fig. 6, pass `Incremental.assigned` in place of its labels.
    O(n log n) a granularity.

    Args:
        labels: (n,) or (G, n) whole numbers from 0.
        classes: (n,) the true classes; or (G, n), an earlier clustering.
        average: The mean of the entropies: "geometric", sqrt(H H), of Strehl and Ghosh, which the paper cites;
            "arithmetic", (H + H) / 2, is the default of scikit-learn.

    Returns:
        A float, or (G,) for (G, n) labels.

    Examples:
        >>> normalised_mutual_information([[0, 0, 1, 1], [0, 1, 0, 1]], [5, 5, 3, 3]).tolist()
        [1.0, 0.0]
    """
    check_one_of("average", average, AVERAGES)
    given = _labels("labels", labels)
    truth = _labels("classes", classes)
    if given.shape[-1] != truth.shape[-1] or (truth.ndim == 2 and truth.shape != given.shape):
        raise_invalid("classes", f"of shape ({given.shape[-1]},), or like labels", f"shape {truth.shape}")
    pairs = zip(np.atleast_2d(given), np.broadcast_to(truth, np.atleast_2d(given).shape), strict=True)
    information = np.array([_information(ours, theirs, average) for ours, theirs in pairs])
    return information.item() if given.ndim == 1 else information


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

    Chen, Hung, Tseng, Chien, Yang. Incremental False Negative Detection for Contrastive Learning. ICLR 2022, Sec. 4.4.

    Args:
        labels: (n,) or (G, n), -1 for none.
        classes: (n,) the true classes, from 0.

    Returns:
        Both rates.

    Examples:
        >>> detection_rates([0, 0, 0, -1], [7, 7, 8, 8])
        DetectionRates(true_positive=0.5, true_negative=0.5)
    """
    given = _labels("labels", labels)
    truth = whole_numbers("classes", to_numpy(classes))
    check_all("classes", truth, truth >= 0, "at least 0")
    if given.shape[-1] != len(truth):
        raise_invalid("classes", f"of shape ({given.shape[-1]},), like labels", f"shape {truth.shape}")
    rates = np.array([_rates(ours, truth) for ours in np.atleast_2d(given)])
    return DetectionRates(*(rates[0].tolist() if given.ndim == 1 else rates.T))


def _labels(parameter: str, values: ArrayLike) -> NDArray[np.int64]:
    """Check (n,) or (G, n) whole numbers from -1, of at least one sample."""
    array = as_array(parameter, to_numpy(values))
    if array.ndim not in (1, 2) or array.size == 0:
        raise_invalid(parameter, "of shape (n,) or (granularities, n), not empty", f"shape {array.shape}")
    shape = "(n,)" if array.ndim == 1 else "(G, n)"
    found = whole_numbers(parameter, array, shape).astype(np.int64, copy=False)
    if found.min() < -1:
        raise_invalid(parameter, "at least -1", first_bad(found, found < -1), "-1 is no label.")
    return found


def _counts(labels: NDArray[np.int64], classes: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """(n,) how many samples share each sample's label, its class, and both."""
    _, mine, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    _, kind, members = np.unique(classes, return_inverse=True, return_counts=True)
    _, pair, cells = np.unique(mine * len(members) + kind, return_inverse=True, return_counts=True)
    return sizes[mine], members[kind], cells[pair]


def _information(labels: NDArray[np.int64], classes: NDArray[np.int64], average: str) -> float:
    both = (labels >= 0) & (classes >= 0)
    total = np.count_nonzero(both)
    if total == 0:
        return 0.0
    label, kind, pair = _counts(labels[both], classes[both])
    # A mean over samples is the sum over cells, each weighted by its share.
    ours, theirs = (float(-np.log(size / total).mean()) for size in (label, kind))
    if ours == theirs == 0:
        return 1.0
    shared = float(np.log(total * (pair / label) / kind).mean())
    mean = np.sqrt(ours * theirs) if average == "geometric" else (ours + theirs) / 2
    return min(max(shared / float(mean), 0.0), 1.0) if mean > 0 else 0.0


def _rates(labels: NDArray[np.int64], classes: NDArray[np.int64]) -> tuple[float, float]:
    label, kind, pair = _counts(labels, classes)
    same, other = kind - 1, len(labels) - kind
    found = np.where(labels >= 0, pair - 1, 0)[same > 0] / same[same > 0]
    lost = np.where(labels >= 0, label - pair, 0)[other > 0] / other[other > 0]
    return float(found.mean()) if found.size else np.nan, 1.0 - float(lost.mean()) if lost.size else np.nan
