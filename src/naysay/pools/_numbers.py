"""The random numbers of compiled loops, for arrays in NumPy: the same bits as `kernels.random`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.kernels import random
from naysay.kernels.compile import in_python

Ids = NDArray[np.int64]
Bits = NDArray[np.uint64]

_mixed, _below, _below_wide = in_python(random.mixed), in_python(random.below), in_python(random.below_wide)
_BITS_BEYOND_A_DOUBLE = np.uint64(11)


def row_states(key: np.uint64, n_rows: int) -> Bits:
    """Where the numbers of each row start."""
    rows = np.arange(n_rows, dtype=np.uint64)
    return np.asarray(_mixed(key ^ _mixed(rows + random.GOLDEN)))


def numbers(states: Bits, slots: Ids) -> Bits:
    """The first random bits of slots."""
    return np.asarray(_mixed(states + slots.astype(np.uint64) * random.GOLDEN))


def retries(states: Bits, slots: Ids, attempts: Any) -> Bits:
    """Further random bits of slots; `attempts` count from 0."""
    counters = random.RETRIES + (slots.astype(np.uint64) << random.SLOT_SHIFT) + np.uint64(attempts)
    return np.asarray(_mixed(states + counters * random.GOLDEN))


def below(bits: Bits, sizes: Any) -> Ids:
    """Uniform on 0 ... size - 1, for sizes below 2^32."""
    return np.asarray(_below(bits, sizes))


def below_wide(bits: Bits, sizes: Any) -> Ids:
    """Uniform on 0 ... size - 1, for sizes below 2^63."""
    return np.asarray(_below_wide(bits, sizes))


def fractions(bits: Bits) -> NDArray[np.float64]:
    """Uniform on [0, 1)."""
    return (bits >> _BITS_BEYOND_A_DOUBLE).astype(np.float64) * 2.0**-53
