"""Results as text for people: numbers, counts, versions, `repr` and JSON, in one wording everywhere."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from math import isfinite, isnan
from platform import python_version
from typing import Any

_SHOWN = 100  # characters of a text or a collection in `short_repr`
_NAMES_SHOWN = 20  # of a list of names in a message
# Control characters but tab and newline, marks that change the direction of text, line ends of Unicode, surrogates.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")  # how a text begins that a spreadsheet may run, or that was escaped


def printable(text: str) -> str:
    """Return a text in which control characters are escaped, so that a terminal shows them and does nothing else."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def spreadsheet_cell(text: str) -> str:
    """Return a text for a cell of a CSV file, which a spreadsheet does not take for a formula.

    A text that begins with = + - @, a tab or a line end gets an apostrophe before it, also if it has some already, so
    that `from_spreadsheet_cell` returns the same text.
    """
    return f"'{text}" if _FORMULA.match(text) else text


def from_spreadsheet_cell(text: str) -> str:
    """Return the text that `spreadsheet_cell` was given."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def duration(seconds: float) -> str:
    """Return seconds, minutes, or hours and minutes."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def percent(share: float, sign: str = " %") -> str:
    """Return a share as a percentage with at least two significant digits; "unknown" for NaN."""
    if isnan(share):
        return "unknown"
    return f"{100 * share:.1f}{sign}" if share >= 0.01 or share == 0 else f"{100 * share:.2g}{sign}"


def with_interval(share: float, low: float, high: float) -> str:
    """Return a share with its 95 % confidence interval."""
    return f"{percent(share)} (95 % CI {percent(low, '')} to {percent(high, '')})"


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


def first_line(error: BaseException) -> str:
    """The first line of an error's message, cut if it is long, or its type if it has none; plain words for JSON's."""
    if isinstance(error, RecursionError):
        return "values nested too deep"
    line = (str(error).splitlines() or [type(error).__name__])[0]
    if "set_int_max_str_digits" in line:
        return "a number of more than 4,300 digits"
    return line if len(line) <= 200 else f"{line[:197]}..."


def shown(value: object) -> str:
    """A short form of any value, for a message."""
    try:
        text = re.sub(r"\s*\n\s*", " ", repr(value))  # arrays have several lines
    except ValueError:  # Python does not write such numbers
        text = "a number of more than 4,300 digits"
    return text if len(text) <= 60 else f"{text[:57]}..."


def shown_names(names: Sequence[object], none: str = "none") -> str:
    """The first names of many, such as columns, for a message: 'id', 'text' and 19,980 more."""
    if not names:
        return none
    first = ", ".join(map(shown, names[:_NAMES_SHOWN]))
    more = len(names) - _NAMES_SHOWN
    return first if more <= 0 else f"{first} and {more:,} more"


def described(part: object, learnt: str = "", **settings: object) -> str:
    """Return 'Name(setting=value, ...; learnt)' for `repr`: every argument of the constructor, arrays by their shape.

    A setting is the attribute of the same name, unless it is given in `settings`. Arguments without an attribute are
    left out.
    """
    names = inspect.signature(type(part)).parameters
    kept = {name: getattr(part, name) for name in names if hasattr(part, name)}
    values = {name: {**kept, **settings}[name] for name in names if name in kept or name in settings}
    texts = ", ".join(f"{name}={_short(value, whole=True)}" for name, value in values.items())
    return f"{type(part).__name__}({texts}{f'; {learnt}' if learnt else ''})"


def short_repr(result: Any, *properties: str) -> str:
    """Return a dataclass of results in a few lines: arrays by their shape, long parts by their length."""
    names = [*(each.name for each in fields(result) if each.repr), *properties]
    parts = (f"{name}={_short(getattr(result, name))}" for name in names)
    return f"{type(result).__qualname__}({', '.join(parts)})"


def json_file(value: Any, non_finite: Callable[[float], Any] = lambda _: None) -> bytes:
    """Return the bytes of a JSON file of a result, as `plain` has it."""
    return (json.dumps(plain(value, non_finite), indent=1, allow_nan=False) + "\n").encode()


def plain(value: Any, non_finite: Callable[[float], Any] = lambda _: None) -> Any:
    """Return a result as JSON has it: dataclasses as objects, arrays as lists.

    NaN and infinity, which JSON does not have, become null, or what `non_finite` returns for them.
    """
    if is_dataclass(value) and not isinstance(value, type):
        value = {each.name: getattr(value, each.name) for each in fields(value)}
    if isinstance(value, Mapping):
        return {name: plain(part, non_finite) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part, non_finite) for part in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist(), non_finite)
    return non_finite(value) if isinstance(value, float) and not isfinite(value) else value


def _short(value: Any, *, whole: bool = False) -> str:
    """A value in short: an array by its shape, a function by its name; other parts by `repr` if they are `whole`."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"array{list(value.shape)}" if value.shape else _short(value.item())
    if is_dataclass(value) and not whole:
        return f"{type(value).__qualname__}(...)"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, str):
        return repr(value) if len(value) <= 2 * _SHOWN else f"{value[: 2 * _SHOWN]!r}..."
    if isinstance(value, partial):
        return f"partial({_short(value.func)})"
    if isinstance(value, Mapping):
        text = "{" + ", ".join(f"{name!r}: {_short(part, whole=whole)}" for name, part in value.items()) + "}"
    elif isinstance(value, list | tuple):
        text = "(" + ", ".join(_short(part, whole=whole) for part in value) + ("," if len(value) == 1 else "") + ")"
    else:
        text = " ".join(repr(value).split())
        nameless = inspect.isroutine(value) or " object at 0x" in text
        return str(getattr(value, "__qualname__", type(value).__name__)).split("<locals>.")[-1] if nameless else text
    return text if whole or len(text) <= _SHOWN else f"<{len(value)} entries>"
