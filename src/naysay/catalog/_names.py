"""Reads names.toml: spellings, and names of the literature that are no rows of the catalogue."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from naysay.checks import public

_FOLDER = Path(__file__).parent


@public
@dataclass(frozen=True, kw_only=True)
class Other:
    """A name of the literature that is no row: another part of the package, no sampler, or not here.

    Attributes:
        name: The name in the literature; `also` has other names of it.
        status: "runs" through another part, "partial", "not a sampler" or "not here".
        parts: What runs, or what is nearest to it; may be empty.
        note: What it is, and what is left out.
        paper: Where it was published; `cited` adds "(not checked)" if it is `unchecked`.
        program: The stem of its file in `examples/`; empty if it has none.

    Examples:
        >>> from naysay import catalog
        >>> {other.status for other in catalog.others()} <= {"runs", "partial", "not a sampler", "not here"}
        True
    """

    name: str
    status: str
    parts: str
    note: str
    paper: str
    also: tuple[str, ...] = ()
    program: str = ""
    unchecked: bool = False

    @property
    def example(self) -> str:
        """The text of the program, which runs as it is; empty if there is none."""
        return program_text(self.program) if self.program else ""

    @property
    def cited(self) -> str:
        """The paper, and that it was not checked if so."""
        return cited(self.paper, unchecked=self.unchecked)

    @property
    def names(self) -> tuple[str, ...]:
        """All its names."""
        return (self.name, *self.also)


@public
@cache
def others() -> tuple[Other, ...]:
    """All names that are no rows.

    Examples:
        >>> from naysay import catalog
        >>> next(other.status for other in catalog.others() if other.name == "SeqGAN")
        'not a sampler'
    """
    entries = _names()["others"]
    return tuple(Other(**{**entry, "also": tuple(entry.get("also", ()))}) for entry in entries)


def program_text(program: str) -> str:
    """The text of a program of the catalogue."""
    return (_FOLDER / "examples" / f"{program}.py").read_text(encoding="utf-8")


def cited(paper: str, *, unchecked: bool) -> str:
    """A paper as it is shown."""
    return f"{paper} (not checked)" if unchecked else paper


def find_other(name: str) -> Other | None:
    """What is known of a name that is no row's; None if nothing is."""
    key = name.casefold()
    key = spellings().get(key, key)
    return next((other for other in others() if key in (own.casefold() for own in other.names)), None)


@cache
def spellings() -> dict[str, str]:
    """{another spelling: a name of a row or of `others`}, case folded."""
    return {spelling.casefold(): name.casefold() for spelling, name in _names()["spellings"].items()}


def spelled() -> tuple[str, ...]:
    """The other spellings, as they are written."""
    return tuple(_names()["spellings"])


@cache
def _names() -> dict[str, Any]:
    """The names that are no rows, as they are in the file."""
    return tomllib.loads((_FOLDER / "names.toml").read_text(encoding="utf-8"))
