"""The scores that a report shows: those of positives, kept and dropped candidates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isnan, nan
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import (
    as_array,
    check_all,
    check_lengths,
    check_number,
    check_range,
    is_number,
    public,
    raise_invalid,
    shown,
    whole_numbers,
)
from naysay.text import short_repr

AnyFloats = NDArray[np.floating[Any]]


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Scores of positives, kept and dropped candidates, and the thresholds between them.

    Distributions are counted from all of these; the page holds the counts, not the scores.

    Args:
        positives: (p,) scores of known positives.
        kept: (m,) scores of the negatives.
        dropped: (r,) scores of candidates that were left out.
        why: (r,) int: place of the reason in `reasons`.
        reasons: Names of the reasons.
        low: Threshold of the hard band; NaN if there is none.
        high: Threshold of the suspected band; NaN if there is none.

    Examples:
        >>> Scores([0.9], [0.5], [0.8], [0], ("suspicious",), high=0.7).reasons
        ('suspicious',)
    """

    positives: AnyFloats
    kept: AnyFloats
    dropped: AnyFloats
    why: NDArray[np.integer[Any]]
    reasons: tuple[str, ...] = ()
    low: float = nan
    high: float = nan

    __repr__ = short_repr

    def __post_init__(self) -> None:
        for name in ("positives", "kept", "dropped"):
            object.__setattr__(self, name, score_array(name, getattr(self, name)))
        object.__setattr__(self, "why", whole_numbers("why", to_numpy(self.why)))
        hold_tuples(self, reasons=str)
        check_lengths(dropped=len(self.dropped), why=len(self.why))
        check_range("why", self.why, len(self.reasons), "reasons")
        number_or_nan("low", self.low)
        number_or_nan("high", self.high)


def score_array(parameter: str, values: Any) -> AnyFloats:
    """Return scores (n,), finite, in their own precision, so that many are not held twice."""
    array = as_array(parameter, to_numpy(values))
    if array.ndim != 1:
        raise_invalid(parameter, "of shape (n,)", f"shape {array.shape}")
    if array.size and array.dtype.kind not in "iuf":
        raise_invalid(parameter, "scores", f"dtype {array.dtype}")
    floats: AnyFloats = array if array.dtype.kind == "f" else array.astype(np.float64)
    check_all(parameter, floats, np.isfinite(floats), "finite")
    return floats


def number_or_nan(parameter: str, value: Any) -> float:
    """Return a number, NaN where there is none, as a float."""
    return float(value) if is_number(value) and isnan(value) else check_number(parameter, value)


def check_texts(**texts: object) -> None:
    """Raise if a value is not a string."""
    for name, text in texts.items():
        if not isinstance(text, str):
            raise_invalid(name, "a text", shown(text))


def hold_tuples(part: Any, **kinds: Any) -> None:
    """Make these fields of a frozen dataclass tuples of one type each; a string is not a sequence of characters."""
    for name, kind in kinds.items():
        given = getattr(part, name)
        if isinstance(given, str | bytes) or not isinstance(given, Iterable):
            raise_invalid(name, "a tuple", shown(given))
        held = tuple(given)
        for place, each in enumerate(held):
            if not isinstance(each, kind) or isinstance(each, str) != (kind is str):
                raise_invalid(f"{name}[{place}]", f"of type {kind.__name__}", type(each).__name__)
        object.__setattr__(part, name, held)
