"""Reads methods.toml, and finds methods by any of their names."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from naysay.catalog._method import Method
from naysay.checks import check_one_of, public, raise_invalid

QUESTIONS = {
    "where": "Where do negatives come from?",
    "which": "Which of them should be taken?",
    "distrust": "Which should be distrusted?",
    "how_many": "How many?",
    "minimise": "What is minimised?",
    "together": "Which rows share a batch?",
    "elsewhere": "Names without parts",
}
_INHERITED = ("summary", "parts", "query", "k", "before", "after", "loss", "batch_loss", "data", "needs", "step")
_ALIKE = 0.9  # of difflib, from 0 to 1


@public
def methods(question: str = "") -> tuple[Method, ...]:
    """All methods, in the order of the table.

    Args:
        question: Only those that answer it: where, which, distrust, how_many, minimise, together or elsewhere.

    Raises:
        NaysayError: If the question is none of these.

    Examples:
        >>> from naysay import catalog
        >>> [method.name for method in catalog.methods("distrust")[:2]]
        ['detectors.Bands', 'detectors.Calibrated']
    """
    if question:
        check_one_of("question", question, tuple(QUESTIONS))
    return tuple(method for method in _rows() if not question or method.question == question)


@public
def find(name: str) -> tuple[Method, ...]:
    """Find methods by a name: usually one, more if the literature uses a name twice.

    Args:
        name: A name in any case; hyphens, spaces and other marks do not count ("MoCo-V2" is "MoCo v2"). The prefixes
            `losses.` and `detectors.` may be left out.

    Raises:
        NaysayError: If no method has the name. The message suggests names that begin so, or one that differs by a slip.

    Examples:
        >>> from naysay import catalog
        >>> [method.name for method in catalog.find("RNS")]
        ['uniform', 'ReinforcedNS']
    """
    exact, loose = _index()
    found = exact.get(name.casefold()) or loose.get(_letters(name))
    if found:
        return found
    near = _near(name)
    suggestion = f"Did you mean {' or '.join(map(repr, near))}? " if near else ""
    raise_invalid("name", "a name of the catalogue", repr(name), f"{suggestion}`naysay methods` lists them all.")


def _near(name: str) -> list[str]:
    """Up to three names that begin with `name`, else one that is nearly equal.

    Methods often differ by one letter: TransD is not TransE, and MoCo v3 is not MoCo v2. So short names must be equal,
    but for two neighbouring letters that are swapped: BRP is a slip for BPR.
    """
    letters = {_letters(known): known for method in methods() for known in method.names}
    key = _letters(name)
    begun = sorted((known for one, known in letters.items() if len(key) >= 4 and one.startswith(key)), key=len)
    swapped = [key[:at] + key[at + 1] + key[at] + key[at + 2 :] for at in range(len(key) - 1)]
    alike = [one for one in swapped if one in letters] or difflib.get_close_matches(key, letters, n=1, cutoff=_ALIKE)
    return begun[:3] or [letters[one] for one in alike[:1]]


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9+*]", "", name.casefold())


@cache
def _index() -> tuple[dict[str, tuple[Method, ...]], dict[str, tuple[Method, ...]]]:
    """{name: methods} by the name without case, and by its letters and digits alone."""
    exact: dict[str, tuple[Method, ...]] = {}
    loose: dict[str, tuple[Method, ...]] = {}
    for method in _rows():
        for name in method.names:
            for key, table in ((name.casefold(), exact), (_letters(name), loose)):
                table[key] = (*table.get(key, ()), method)
    for method in _rows():
        short = method.name.removeprefix("losses.").removeprefix("detectors.")
        if short != method.name:
            exact[short.casefold()] = (*exact.get(short.casefold(), ()), method)
            loose[_letters(short)] = (*loose.get(_letters(short), ()), method)
    return exact, loose


@cache
def _rows() -> tuple[Method, ...]:
    """All rows; one that is like another has its fields where it has none of its own."""
    table = tomllib.loads((Path(__file__).parent / "methods.toml").read_text(encoding="utf-8"))
    made: dict[str, Method] = {}
    for entry in _in_order(table):
        inherited = {}
        if "like" in entry:
            inherited = {name: getattr(made[entry["like"]], name) for name in _INHERITED}
        made[entry["name"]] = Method(**{**inherited, **entry})
    return tuple(made.values())


def _in_order(table: Mapping[str, Iterable[Mapping[str, Any]]]) -> Iterable[dict[str, Any]]:
    """The entries as keywords of `Method`."""
    for question, entries in table.items():
        for entry in entries:
            values = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
            yield {"question": question, **values}
