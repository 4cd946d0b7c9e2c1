"""Floats as whole numbers in the same order: what a sketch sorts, counts and compares.

The bits of a float, with the sign bit turned for numbers at or above 0 and all bits turned below, are an unsigned
number that grows with the float. The key after a key is the next float of that precision, and equal scores have
one key (-0 counts as 0).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[Any]  # uint16, uint32 or uint64, as wide as the floats


def to_keys(scores: NDArray[Any]) -> Keys:
    """The keys of float16, float32 or float64 without NaN."""
    bits = 8 * scores.dtype.itemsize
    unsigned, signed = np.dtype(f"u{bits // 8}"), np.dtype(f"i{bits // 8}")
    plain = (scores + scores.dtype.type(0)).view(unsigned)  # -0 + 0 is 0
    turned = (plain.view(signed) >> signed.type(bits - 1)).view(unsigned)  # all bits below 0, none above
    turned |= unsigned.type(1 << (bits - 1))
    return np.asarray(plain ^ turned)


def to_scores(keys: Keys, dtype: np.dtype[Any]) -> NDArray[Any]:
    """The floats of keys."""
    bits = 8 * dtype.itemsize
    top = keys.dtype.type(1 << (bits - 1))
    return np.asarray(np.where(keys & top, keys ^ top, ~keys)).view(dtype)


def rounded(values: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Thresholds in the precision of scores, to the nearest: as NumPy and torch compare an array with a number."""
    with np.errstate(over="ignore"):  # beyond the largest float16 comes infinity, which no score reaches
        return np.asarray(values, np.float64).astype(dtype)


def sorted_keys(keys: Keys) -> Keys:
    """The keys in order, by a radix sort; `keys` itself is used up."""
    from naysay.kernels.sketch import DIGIT, sort_keys

    digits = -(-8 * keys.dtype.itemsize // DIGIT)
    spare = np.empty_like(keys)
    sort_keys(keys, spare, digits)
    return spare if digits % 2 else keys
