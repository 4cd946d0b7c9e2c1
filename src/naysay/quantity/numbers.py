"""Numbers that users hand to this folder: read as float64, and refused in one sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, first_bad, refuse, shown

Floats = NDArray[np.float64]


def numbers(owner: str, parameter: str, values: Any) -> Floats:
    """`values` as a float64 array of any shape; what is no number, and NaN, is refused."""
    array = as_array(owner, parameter, to_numpy(values))
    if array.dtype.kind not in "iuf":
        refuse(owner, parameter, "a number, or an array of numbers", shown(values))
    floats = array.astype(np.float64)
    allow(owner, parameter, floats, ~np.isnan(floats), "a number")
    return floats


def allow(owner: str, parameter: str, values: Floats, good: NDArray[np.bool_], rule: str, advice: str = "") -> None:
    """Refuse the values that are not good: the number itself, or the first bad row and how many."""
    if not good.all():
        refuse(owner, parameter, rule, values.item() if values.ndim == 0 else first_bad(values, ~good), advice)


def one_number(owner: str, parameter: str, value: Any) -> float:
    """`value` as a float; an array, text and NaN are refused."""
    array = as_array(owner, parameter, to_numpy(value))
    if array.ndim or array.dtype.kind not in "iuf" or np.isnan(array):
        refuse(owner, parameter, "one number", shown(value))
    return float(array)


def check_weight(owner: str, weight: Any) -> float:
    """The weight w of good and bad samples against easy ones, in (0, 1)."""
    given = one_number(owner, "weight", weight)
    if not 0 < given < 1:
        refuse(owner, "weight", "above 0 and below 1", given, "The paper finds 0.9 to fit.")
    return given


def plain(values: Floats) -> Any:
    """A float where one number was asked about, else the array."""
    return values.item() if values.ndim == 0 else values
