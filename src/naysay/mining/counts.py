"""k as users write it: how many negatives each anchor is to have."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import check_whole, first_bad, refuse, whole_numbers


def read_counts(owner: str, k: Any, rows: int) -> NDArray[np.int64]:
    """(rows,) from one number for all, or one for each."""
    given = to_numpy(k)
    if np.ndim(given) == 0:
        return np.full(rows, check_whole(owner, "k", given.item() if isinstance(given, np.ndarray) else given, 0))
    counts = whole_numbers(owner, "k", given).astype(np.int64)
    if len(counts) != rows:
        refuse(owner, "k", f"one number, or one for each of the {rows} anchors", f"{len(counts)} numbers")
    if counts.size and counts.min() < 0:
        refuse(owner, "k", "at least 0", first_bad(counts, counts < 0))
    return counts
