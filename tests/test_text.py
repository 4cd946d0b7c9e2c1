"""Numbers, counts and versions as text."""

from dataclasses import dataclass, field
from importlib.metadata import version
from typing import final

import numpy as np
import pytest

from naysay.text import counted, number, percent, short_repr, versions


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1234567, "1,234,567"),
        (3.0, "3"),
        (0.123456, "0.1235"),
        (-0.5, "-0.5"),
        (12345.6, "12,346"),
        (float("nan"), ""),
        (1e-7, "1e-07"),
        (float("inf"), "inf"),
    ],
)
def test_number(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0 %"),
        (0.5, "50.0 %"),
        (0.01, "1.0 %"),
        (0.00123, "0.12 %"),
        (1.0, "100.0 %"),
        (float("nan"), "unknown"),
    ],
)
def test_percent(value, text):
    assert percent(value) == text


def test_counted():
    assert (counted(1, "negative"), counted(0, "negative"), counted(2000, "negative")) == (
        "1 negative",
        "0 negatives",
        "2,000 negatives",
    )


def test_versions():
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
