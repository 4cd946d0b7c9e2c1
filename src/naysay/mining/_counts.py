"""k as users write it: how many negatives each anchor is to have."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import check_whole, first_bad, raise_invalid, whole_numbers


def read_counts(k: Any, rows: int) -> NDArray[np.int64]:
    """(rows,) from one number for all, or one for each."""
    given = to_numpy(k)
    if np.ndim(given) == 0:
        return np.full(rows, check_whole("k", given.item() if isinstance(given, np.ndarray) else given, 0))
    counts = whole_numbers("k", given).astype(np.int64)
    if len(counts) != rows:
        raise_invalid("k", f"one number, or one for each of the {rows} anchors", f"{len(counts)} numbers")
    if counts.size and counts.min() < 0:
        raise_invalid("k", "at least 0", first_bad(counts, counts < 0))
    return counts
