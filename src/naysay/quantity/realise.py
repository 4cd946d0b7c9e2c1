"""Realise a fractional k as whole numbers: floor(k) + Bernoulli(k - floor(k)) for each row, so that the mean is k."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import MOST_ROWS, as_array, check_all, check_whole, public, raise_invalid, shown
from naysay.rng import key_from


@public
def realise(k: Any, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw whole numbers whose expectation is k.

    A whole k draws nothing from `rng`; otherwise one key is drawn, whatever the size.

    Args:
        k: A number of at least 0 and below 2^31, or (size,) of them.
        size: The number of rows.
        rng: The source of randomness, `naysay.rng_for(seed, step)`.

    Returns:
        (size,) int64, floor(k) or ceil(k) for each row.

    Examples:
        >>> from naysay import rng_for
        >>> realise(2, 3, rng_for(0)).tolist(), sorted(set(realise(2.5, 100, rng_for(0)).tolist()))
        ([2, 2, 2], [2, 3])
    """
    return _realised(k, check_whole("size", size, 0, MOST_ROWS), rng)


def slots(k: Any, size: int, rng: np.random.Generator) -> int | NDArray[np.int64]:
    """Return what a sampler requests from its pool: k itself if it is one whole number, so that K is k for no rows."""
    counts = _realised(k, size, rng)
    one = np.asarray(to_numpy(k))
    return int(one) if one.ndim == 0 and one == np.floor(one) else counts


def _realised(k: Any, rows: int, rng: np.random.Generator) -> NDArray[np.int64]:
    wanted = as_array("k", to_numpy(k))
    if wanted.dtype.kind not in "iuf":
        raise_invalid("k", "a number", shown(k))
    if wanted.ndim > 1 or (wanted.ndim == 1 and len(wanted) != rows):
        raise_invalid("k", f"one number, or one for each of the {rows} rows", f"shape {wanted.shape}")
    check_all("k", wanted, np.isfinite(wanted) & (wanted >= 0), "finite and at least 0")
    check_all("k", wanted, wanted < 1 << 31, "below 2^31")
    counts: NDArray[np.int64] = np.full(rows, np.floor(wanted).astype(np.int64))
    rest = wanted - np.floor(wanted)
    if rest.any():
        key = key_from(rng)
        counts += np.random.Generator(np.random.Philox(key=int(key))).random(rows) < rest
    return counts
