"""Pseudo-labels against true classes: how much they tell about them, and which false negatives they would find."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, check_one_of, first_bad, public, raise_invalid, whole_numbers

AVERAGES = ("geometric", "arithmetic")


@public
def normalised_mutual_information(labels: ArrayLike, classes: ArrayLike, *, average: str = "geometric") -> Any:
    """I(labels; classes) / mean(H(labels), H(classes)): 0 where one says nothing of the other, 1 where it says all.

    Samples that have -1 on either side are left out; 0 where none is left. 1 if both have one value only. For the
    quality of whole clusterings, as in the paper's Fig. 6, pass `Incremental.assigned` in place of its labels.

    Cost: O(n log n) a granularity.

    Args:
        labels: (n,) or (G, n) whole numbers from 0 up: a float for the one, (G,) for the other.
        classes: (n,), the true classes; or (G, n), an earlier clustering.
        average: The mean of the entropies: "geometric", sqrt(H H), of Strehl and Ghosh, which the paper cites;
            "arithmetic", (H + H) / 2, is what scikit-learn takes unless told.

    Example:
        >>> normalised_mutual_information([[0, 0, 1, 1], [0, 1, 0, 1]], [5, 5, 3, 3]).tolist()
        [1.0, 0.0]
    """
    check_one_of("average", average, AVERAGES)
    given = _labels("labels", labels)
    truth = _labels("classes", classes)
    if given.shape[-1] != truth.shape[-1] or (truth.ndim == 2 and truth.shape != given.shape):
        raise_invalid("classes", f"of shape ({given.shape[-1]},), or like labels", f"shape {truth.shape}")
    pairs = zip(np.atleast_2d(given), np.broadcast_to(truth, np.atleast_2d(given).shape), strict=True)
    found = np.array([_information(ours, theirs, average) for ours, theirs in pairs])
    return found.item() if given.ndim == 1 else found


@final
@dataclass(frozen=True, slots=True)
class DetectionRates:
    """What `detection_rates` found; a float each, or (G,) for G granularities.

    NaN where no anchor has such a partner.

    Args:
        true_positive: The mean over anchors, of those that have a partner of their class, of the share of such
            partners that carry the anchor's label: MTPR, false negatives that are found.
        true_negative: The mean over anchors of the share of samples of other classes that do not: MTNR, negatives
            kept.
    """

    true_positive: Any
    true_negative: Any


@public
def detection_rates(labels: ArrayLike, classes: ArrayLike) -> DetectionRates:
    """MTPR and MTNR of pseudo-labels, exact over all pairs of samples.

    A pair is flagged if both carry one label; -1 matches nothing. Without any label: 0 and 1.

    Chen, Hung, Tseng, Chien, Yang. Incremental False Negative Detection for Contrastive Learning. ICLR 2022, Sec. 4.4.

    Cost: O(n log n) a granularity: pairs are counted, not looked at.

    Args:
        labels: (n,) or (G, n), -1 none.
        classes: (n,), the true ones, from 0 up.

    Example:
        >>> detection_rates([0, 0, 0, -1], [7, 7, 8, 8])
        DetectionRates(true_positive=0.5, true_negative=0.5)
    """
    given = _labels("labels", labels)
    truth = whole_numbers("classes", to_numpy(classes))
    if (truth < 0).any():
        raise_invalid("classes", "at least 0", first_bad(truth, truth < 0))
    if given.shape[-1] != len(truth):
        raise_invalid("classes", f"of shape ({given.shape[-1]},), like labels", f"shape {truth.shape}")
    rates = np.array([_rates(ours, truth) for ours in np.atleast_2d(given)])
    return DetectionRates(*(rates[0].tolist() if given.ndim == 1 else rates.T))


def _labels(parameter: str, values: ArrayLike) -> NDArray[np.int64]:
    """(n,) or (G, n) whole numbers from -1 up, of at least one sample."""
    array = as_array(parameter, to_numpy(values))
    if array.ndim not in (1, 2) or array.size == 0:
        raise_invalid(parameter, "of shape (n,) or (granularities, n), not empty", f"shape {array.shape}")
    shape = "(n,)" if array.ndim == 1 else "(G, n)"
    found = whole_numbers(parameter, array, shape).astype(np.int64, copy=False)
    if found.min() < -1:
        raise_invalid(parameter, "at least -1", first_bad(found, found < -1), "-1 is no label.")
    return found


@dataclass(frozen=True, slots=True)
class _Counts:
    """How many samples share the label, the class, and both, with each sample."""

    label: NDArray[np.int64]
    kind: NDArray[np.int64]
    both: NDArray[np.int64]


def _counts(labels: NDArray[np.int64], classes: NDArray[np.int64]) -> _Counts:
    """(n,) each."""
    _, mine, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    _, kind, members = np.unique(classes, return_inverse=True, return_counts=True)
    _, pair, cells = np.unique(mine * len(members) + kind, return_inverse=True, return_counts=True)
    return _Counts(sizes[mine], members[kind], cells[pair])


def _information(labels: NDArray[np.int64], classes: NDArray[np.int64], average: str) -> float:
    both = (labels >= 0) & (classes >= 0)
    total = np.count_nonzero(both)
    if total == 0:
        return 0.0
    count = _counts(labels[both], classes[both])
    # A mean over samples is the sum over cells, each weighed by its share.
    ours, theirs = (float(-np.log(held / total).mean()) for held in (count.label, count.kind))
    if ours == theirs == 0:
        return 1.0
    shared = float(np.log(total * (count.both / count.label) / count.kind).mean())
    mean = np.sqrt(ours * theirs) if average == "geometric" else (ours + theirs) / 2
    return min(max(shared / float(mean), 0.0), 1.0) if mean > 0 else 0.0


def _rates(labels: NDArray[np.int64], classes: NDArray[np.int64]) -> tuple[float, float]:
    count = _counts(labels, classes)
    labelled = labels >= 0
    same, other = count.kind - 1, len(labels) - count.kind
    found = np.where(labelled, count.both - 1, 0)[same > 0] / same[same > 0]
    lost = np.where(labelled, count.label - count.both, 0)[other > 0] / other[other > 0]
    return (
        float(found.mean()) if found.size else float("nan"),
        1.0 - float(lost.mean()) if lost.size else float("nan"),
    )
