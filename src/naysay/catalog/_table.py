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
_SHORTEST_SLIP = 5  # letters: in shorter names one letter makes another method
_LONG = 12  # letters: from here on two names that are alike are one name with a slip
_ALIKE = 0.85  # of difflib, for long names


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
    """Up to three names that begin with `name`, else one that differs from it by a slip of the keyboard.

    Methods often differ by one letter: TransD is not TransE, and MoCo v3 is not MoCo v2. So a short name may only lack
    a letter, have one more, or have two neighbours exchanged.
    """
    letters = {own: _letters(own) for method in methods() for own in method.names}
    key = _letters(name)
    begun = sorted((own for own in letters if len(key) >= 4 and letters[own].startswith(key)), key=len)
    slipped = [own for own in letters if _is_slip(key, letters[own])]
    long = {letters[own]: own for own in letters if len(letters[own]) >= _LONG}
    alike = difflib.get_close_matches(key, long, n=1, cutoff=_ALIKE)
    return begun[:3] or slipped[:1] or [long[one] for one in alike]


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9+*]", "", name.casefold())


def _is_slip(key: str, name: str) -> bool:
    """Whether two words differ by one letter that one of them lacks, or by two exchanged."""
    short, long = sorted((key, name), key=len)
    if len(short) < _SHORTEST_SLIP:
        return False
    if len(long) == len(short):
        exchanged = (long[:i] + long[i + 1 : i + 2] + long[i : i + 1] + long[i + 2 :] for i in range(len(long)))
        return short in exchanged
    return short in (long[:i] + long[i + 1 :] for i in range(len(long)))


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
