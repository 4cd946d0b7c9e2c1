"""Counter-based random numbers inside compiled loops (SplitMix64's output function, Steele et al. 2014).

A row has a state, hashed from the call's key and the row's number; the t-th number of the row is the hash of
state + t * golden ratio. Slot j of a row uses t = j, and its later tries use numbers that belong to that slot
alone, so the first eight negatives are the same for n = 8 and n = 80.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.kernels.compile import compiled, inlined

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_A = np.uint64(0xBF58476D1CE4E5B9)
_MIX_B = np.uint64(0x94D049BB133111EB)
_S12, _S30, _S27, _S31, _S32 = np.uint64(12), np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
# Tries of a slot are numbered from here: past every first try, 4,096 apart.
RETRIES = np.uint64(1 << 40)
SLOT_SHIFT = np.uint64(12)
_PLACES = 2.0**-52


@inlined
def mixed(value: Any) -> Any:
    """A bijection on 64 bits whose output looks random."""
    value = (value ^ (value >> _S30)) * _MIX_A
    value = (value ^ (value >> _S27)) * _MIX_B
    return value ^ (value >> _S31)


@inlined
def row_state(key: Any, row: Any) -> Any:
    """Where the numbers of a row start."""
    return mixed(key ^ mixed(np.uint64(row) + GOLDEN))


@inlined
def number(state: Any, slot: Any) -> Any:
    """The first 64 random bits of a slot."""
    return mixed(state + np.uint64(slot) * GOLDEN)


@inlined
def retry(state: Any, slot: Any, attempt: Any) -> Any:
    """Further random bits of a slot; `attempt` counts from 0 and stays below 4,096."""
    counter = RETRIES + (np.uint64(slot) << SLOT_SHIFT) + np.uint64(attempt)
    return mixed(state + counter * GOLDEN)


@inlined
def below(bits: Any, size: Any) -> Any:
    """floor(bits * size / 2^64) for size < 2^32: uniform on 0 ... size - 1 up to size / 2^64."""
    wide = np.uint64(size)
    return np.int64(((bits >> _S32) * wide + (((bits & _LOW) * wide) >> _S32)) >> _S32)


@inlined
def below_wide(bits: Any, size: Any) -> Any:
    """The same for any size below 2^63, by the schoolbook product of 32-bit halves."""
    wide = np.uint64(size)
    a, b = bits >> _S32, bits & _LOW
    c, d = wide >> _S32, wide & _LOW
    middle = a * d + ((b * d) >> _S32)
    cross = b * c + (middle & _LOW)
    return np.int64(a * c + (middle >> _S32) + (cross >> _S32))


@compiled
def uniforms(start: Any, stop: Any, key: Any, out: Any) -> None:
    """out[row, slot] = a number in (0, 1): the middle of one of 2^52 equal parts, so never 0 or 1."""
    for row in range(start, stop):
        state = row_state(key, row)
        for slot in range(out.shape[1]):
            out[row, slot] = (np.float64(np.int64(number(state, slot) >> _S12)) + 0.5) * _PLACES
