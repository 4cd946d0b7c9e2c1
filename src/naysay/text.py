"""Numbers, counts and versions as text for people: one wording for the terminal, reports and error messages."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from math import isnan
from platform import python_version


def percent(share: float) -> str:
    """Return a share as a percentage with at least two significant digits; "unknown" for NaN.

    Examples:
        >>> percent(0.1234), percent(0.00012), percent(0)
        ('12.3 %', '0.012 %', '0.0 %')
    """
    if isnan(share):
        return "unknown"
    return f"{100 * share:.1f} %" if share >= 0.01 or share == 0 else f"{100 * share:.2g} %"


def number(value: float) -> str:
    """Return a number in four digits, or whole with commas; an empty text for NaN."""
    if isinstance(value, float) and isnan(value):
        return ""
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.0f}"


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: "1 negative", "2,000 negatives"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def versions(*packages: str) -> dict[str, str]:
    """Return {name: version} of Python and of each package, "not installed" where there is none."""
    known = {"Python": python_version()}
    for package in packages:
        try:
            known[package] = version(package)
        except PackageNotFoundError:
            known[package] = "not installed"
    return known
