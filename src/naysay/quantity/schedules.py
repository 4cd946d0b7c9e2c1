"""Schedules: a parameter that changes with the training step, the number of negatives above all; and fractional k."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import (
    MOST_ROWS,
    as_array,
    as_floats,
    check_all,
    check_number,
    check_whole,
    plain_number,
    public,
    raise_invalid,
    shown,
)
from naysay.rng import key_from


@final
@public
@dataclass(frozen=True, slots=True, repr=False)
class Adaptive:
    """A schedule of k, see `adaptive`. Call it with a step or an array of steps; it can be pickled and printed."""

    peak: float
    steps: int
    turning: float = 0.1

    def __post_init__(self) -> None:
        advice = "It is the share of steps in which k rises."
        turning = check_number("turning", self.turning, at_least=0, at_most=1, advice=advice)
        peak = check_number("peak", self.peak, at_least=1, finite=True, advice="Take the k of an estimate.")
        object.__setattr__(self, "peak", peak)
        object.__setattr__(self, "steps", check_whole("steps", self.steps, 1))
        object.__setattr__(self, "turning", turning)

    def __call__(self, step: Any) -> Any:
        """Return k at a step: a float for a number, else a float64 array of its shape; 1 for steps beyond the last."""
        at = as_floats("step", step)
        check_all("step", at, at >= 0, "at least 0")
        last = self.steps - 1
        turn = min(self.turning * self.steps, last)
        rise = at / turn if turn > 0 else np.ones_like(at)
        fall = (last - at) / (last - turn) if last > turn else np.where(at <= last, 1.0, 0.0)
        return plain_number(np.asarray(1 + (self.peak - 1) * np.clip(np.minimum(rise, fall), 0, 1)))

    def __repr__(self) -> str:
        return f"adaptive(peak={self.peak}, steps={self.steps}, turning={self.turning})"


@public
def adaptive(peak: float, steps: int, turning: float = 0.1) -> Adaptive:
    """Make a schedule of k: 1 at step 0, up to `peak` at turning * steps, down to 1 at the last step, steps - 1.

    Wu, Wu and Huang. Rethinking InfoNCE: How Many Negative Samples Do You Need? Straight lines are our reading of its
    Fig. 8; the turning point at 10 % is the paper's. k is a float, which samplers realise per row (`realise`).

    Args:
        peak: The largest k, at least 1: the k of an `estimate`.
        steps: The number of steps of the run. Beyond them k stays 1.
        turning: The share of steps in which k rises, from 0 (start at the peak) to 1 (end at it).

    Examples:
        >>> k_at = adaptive(peak=12, steps=101)
        >>> k_at(0), round(k_at(5), 2), round(k_at(10.1), 2), round(k_at(55.05), 2), k_at(100)
        (1.0, 6.45, 12.0, 6.5, 1.0)
    """
    return Adaptive(peak, steps, turning)


def at_step(parameter: Any, step: int) -> Any:
    """Return the value of a parameter at a step: parameter(step) if it is a function, else the parameter itself."""
    return parameter(step) if callable(parameter) else parameter


@final
@public
@dataclass(frozen=True, slots=True)
class Linear:
    """A schedule that changes linearly from `start` at step 0 to `stop` at `steps`, and stays there.

    Values are whole numbers if both ends are; halves are rounded up.

    Attributes:
        start: The value at step 0.
        stop: The value at step `steps` and beyond.
        steps: The number of steps between them, at least 1.

    Examples:
        >>> hardness = Linear(1.0, 0.5, steps=100)
        >>> hardness(0), hardness(50), hardness(100), hardness(1000)
        (1.0, 0.75, 0.5, 0.5)
        >>> Linear(1, 64, steps=100)(50)
        33
    """

    start: float
    stop: float
    steps: int

    def __post_init__(self) -> None:
        check_number("start", self.start, finite=True)
        check_number("stop", self.stop, finite=True)
        check_whole("steps", self.steps, 1)

    def __call__(self, step: int) -> float:
        """Return the value at a step."""
        share = min(max(check_number("step", step) / self.steps, 0.0), 1.0)
        value = (1.0 - share) * self.start + share * self.stop  # exact at both ends
        whole = all(isinstance(end, int | np.integer) for end in (self.start, self.stop))
        return math.floor(value + 0.5) if whole else float(value)


@public
def realise(k: Any, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw whole numbers whose expectation is k: floor(k) + Bernoulli(k - floor(k)) for each row.

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
    fraction = wanted - np.floor(wanted)
    if fraction.any():
        key = key_from(rng)
        counts += np.random.Generator(np.random.Philox(key=int(key))).random(rows) < fraction
    return counts
