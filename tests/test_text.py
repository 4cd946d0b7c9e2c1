"""Numbers, counts and versions as text."""

from importlib.metadata import version

import pytest

from naysay.text import counted, number, percent, versions


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
