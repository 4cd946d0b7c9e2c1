"""One check for the numbers that samplers take, fixed or at a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from naysay.checks import raise_invalid, shown


def check_number(parameter: str, value: Any, rule: str, holds: Callable[[float], bool]) -> float:
    """`value` as a float, refused unless it is a number of which the rule holds; NaN must not pass `holds`."""
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not number or not holds(float(value)):
        raise_invalid(parameter, rule, shown(value))
    return float(value)
