"""What all plans of batches share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import MOST_ROWS, check_generator, check_whole, raise_invalid, whole_numbers

Ids = NDArray[np.int64]


def check_sizes(n: object, size: object) -> tuple[int, int]:
    """The number of rows and the size of a batch."""
    return check_whole("n", n, 1, MOST_ROWS), check_whole("size", size, 1, MOST_ROWS)


def check_epoch(epoch: object, rng: Any) -> None:
    """Raise if one of the arguments of `plan` is invalid."""
    check_whole("epoch", epoch, 0)
    check_generator(rng)


def labels_of(parameter: str, labels: Any, n: int | None = None) -> Ids:
    """(n,) labels of at least -1."""
    array = whole_numbers(parameter, to_numpy(labels)).astype(np.int64)
    if n is not None and len(array) != n:
        raise_invalid(parameter, f"of {n} rows", len(array))
    if array.size and array.min() < -1:
        raise_invalid(parameter, "at least -1", int(array.min()))
    return array


def batches_needed(n: int, size: int) -> int:
    """How many batches hold n rows."""
    return -(-n // size)
