"""What users hand to this folder, read and refused in one sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, check_number, check_range, first_bad, raise_invalid, whole_numbers
from naysay.difficulty._ranked import Mask

HARD, HARDEST, BINS, TEMPERATURE = 0.05, 0.001, 20, 0.2


def read_scores(
    scores: Any, mask: Any = None, *, parameter: str = "scores", start: int = 0
) -> tuple[NDArray[Any], Mask | None]:
    """Scores (B, K) as float32 or float64, finite where they count, and which count; `start` is their first row."""
    array = as_array(parameter, to_numpy(scores))
    if array.ndim != 2:
        raise_invalid(parameter, "of shape (B, K), a row per anchor", f"shape {array.shape}")
    if array.dtype.kind not in "iuf":
        raise_invalid(parameter, "numbers", f"dtype {array.dtype}")
    narrow = array.dtype.kind == "f" and array.dtype.itemsize <= 4
    array = array.astype(np.float32 if narrow else np.float64, copy=False)
    kept = None if mask is None else _mask(mask, array.shape)
    good = np.isfinite(array) if kept is None else np.isfinite(array) | ~kept
    if not good.all():
        rows, columns = np.nonzero(~good)
        many = len(np.unique(rows))
        got = f"{array[rows[0], columns[0]]} at row {start + rows[0]} ({many} such row{'s' if many > 1 else ''})"
        raise_invalid(parameter, "finite", got, "Leave out pairs that have no score.")
    return array, kept


def read_labels(parameter: str, labels: Any, size: int, of: str) -> NDArray[np.int64]:
    """Classes (size,) as int64, from 0 on."""
    array = whole_numbers(parameter, to_numpy(labels))
    if len(array) != size:
        raise_invalid(parameter, f"one for each of the {size} {of}", f"{len(array)}")
    if (array < 0).any():
        raise_invalid(parameter, "0 or more", first_bad(array, array < 0), "Leave out what has no class.")
    return array.astype(np.int64)


def read_hierarchy(hierarchy: Any) -> NDArray[np.int64]:
    """The parent of each class and of each group of classes, -1 for the root; one tree."""
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
    for _ in range(size.bit_length()):  # twice as far up each time: all are at the root, or go round
        above = above[above]
    lost = ~np.isin(above, roots)
    if lost.any():
        raise_invalid("hierarchy", "without a cycle", f"a cycle above class {np.flatnonzero(lost)[0]}")
    return parents


def check_in_tree(parameter: str, labels: NDArray[Any], parents: NDArray[np.int64]) -> None:
    """Refuse classes that the tree does not have."""
    check_range(parameter, labels, len(parents), "classes and groups in hierarchy")


def check_shares(hard: Any, hardest: Any) -> tuple[float, float]:
    """The shares of the hard (with the hardest) and of the hardest negatives."""
    top = check_hard(hard)
    very = check_number("hardest", hardest)
    if not 0 <= very < top:
        raise_invalid("hardest", f"at least 0 and below hard, {top}", very)
    return top, very


def check_hard(hard: Any) -> float:
    """A share above 0 and below 1."""
    top = check_number("hard", hard)
    if not 0 < top < 1:
        raise_invalid("hard", "above 0 and below 1", top, "0.05 is the hardest 5 %.")
    return top


def check_temperature(temperature: Any) -> float:
    """A finite number above 0."""
    given = check_number("temperature", temperature)
    if not 0 < given < np.inf:
        raise_invalid("temperature", "above 0 and finite", given)
    return given


def _mask(mask: Any, shape: tuple[int, ...]) -> Mask:
    array = as_array("mask", to_numpy(mask))
    if array.shape != shape or array.dtype != np.bool_:
        raise_invalid("mask", f"of shape {shape} and bool, like the scores", f"{array.shape} {array.dtype}")
    return array
