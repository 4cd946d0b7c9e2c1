"""Numbers, counts and versions as text."""

from dataclasses import dataclass, field
from importlib.metadata import version
from typing import final

import numpy as np

from naysay.text import counted, number, percent, short_repr, versions


def test_numbers_shares_and_counts():
    values = (0, 1234567, 3.0, 0.123456, -0.5, 12345.6, float("nan"), 1e-7, float("inf"))
    assert [*map(number, values)] == ["0", "1,234,567", "3", "0.1235", "-0.5", "12,346", "", "1e-07", "inf"]
    shares = (0.0, 0.5, 0.01, 0.00123, 1.0, float("nan"))
    assert [*map(percent, shares)] == ["0.0 %", "50.0 %", "1.0 %", "0.12 %", "100.0 %", "unknown"]
    assert [counted(count, "negative") for count in (1, 0, 2000)] == ["1 negative", "0 negatives", "2,000 negatives"]
    known = versions("numpy", "no-such-package")
    assert [*known] == ["Python", "numpy", "no-such-package"]
    assert (known["numpy"], known["no-such-package"]) == (version("numpy"), "not installed")


@final
@dataclass(frozen=True)
class Found:
    k: int
    curve: object
    notes: tuple
    inner: object = None
    hidden: int = field(default=3, repr=False)

    __repr__ = short_repr

    @property
    def summary(self):
        return "s" * 1000


def test_a_result_shows_arrays_by_shape_and_long_parts_by_length():
    found = Found(4, np.zeros((3, 1000)), ("a",) * 50, Found(1, np.float64(0.123456), {"x": 1.0}))
    assert repr(found) == "Found(k=4, curve=array[3, 1000], notes=<50 entries>, inner=Found(...))"
    assert repr(found.inner) == "Found(k=1, curve=0.1235, notes={'x': 1}, inner=None)"
    assert len(short_repr(found, "summary")) < 350
