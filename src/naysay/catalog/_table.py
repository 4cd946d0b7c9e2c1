"""Reads methods.toml into rows, and finds a row by name."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from naysay.catalog._names import Other, cited, find_other, others, program_text, spelled, spellings
from naysay.checks import public, raise_invalid

_FOLDER = Path(__file__).parent
_ALIKE = 0.85  # of difflib: slips of the keyboard in a long name
_STATUS = {
    "runs": "another part of the package",
    "partial": "partly another part of the package",
    "not a sampler": "not a sampler",
    "not here": "not here",
}
_Entry = TypeVar("_Entry", bound="_Named")


@dataclass(frozen=True, kw_only=True)
class _Named:
    """What every entry of the table has: a name, a paper and a program."""

    name: str
    paper: str
    program: str
    unchecked: bool = False

    @property
    def cited(self) -> str:
        """The paper, and that it was not checked if so."""
        return cited(self.paper, unchecked=self.unchecked)

    @property
    def example(self) -> str:
        """The text of the program, which runs as it is."""
        return program_text(self.program)


@dataclass(frozen=True, kw_only=True)
class _Row(_Named):
    """What methods, losses and detectors have in common."""

    summary: str
    formula: str
    cost: str
    also: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All names of this row."""
        return (self.name, *self.also)


@public
@dataclass(frozen=True, kw_only=True)
class Alias(_Named):
    """A method of the literature that is a row's composition, with its own terms.

    Attributes:
        name: The name in the literature.
        paper: Where it was published; `cited` adds "(not checked)" if it is `unchecked`.
        program: The stem of its file in `examples/`; the row's program if the composition is the same.
        note: What its anchors and items are, its settings, and where the paper differs.
        parts: Its settings as code, in the names of the program; empty if they are the row's.

    Examples:
        >>> from naysay import catalog
        >>> method, alias = catalog.find("LightGCN")
        >>> alias.parts
        'Static(Everything(known, distinct=False))'
    """

    note: str
    parts: str = ""


@public
@dataclass(frozen=True, kw_only=True)
class Method(_Row):
    """A sampler with its pool.

    Attributes:
        name: The name of the row; `also` has equivalent names.
        kind: static, hard, mixed, adversarial, auxiliary or in-batch.
        pool: Where candidates come from: global, local, mini-batch, hop or memory.
        summary: What is drawn, in one sentence.
        formula: What is drawn, as a probability.
        parts: The composition, as code.
        data: What it and its aliases were made for: pairs, graph, triples, texts, images.
        needs: What it needs beside known pairs: scores (or vectors) of the model, extra data, torch.
        step: What a step costs against `Dynamic` with 32 candidates: low (at most half), medium (at most twice) or
            high. `benchmarks.speed.catalogue` measures it.
        aliases: Methods of the literature with this composition.

    Examples:
        >>> from naysay import catalog
        >>> catalog.methods()[0].parts
        'Static(Everything(positives))'
    """

    kind: str
    pool: str
    parts: str
    data: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    step: str = ""
    aliases: tuple[Alias, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All names of this row, those of its aliases included."""
        return (self.name, *self.also, *(alias.name for alias in self.aliases))


@public
@dataclass(frozen=True, kw_only=True)
class Loss(_Row):
    """A loss.

    Attributes:
        name: `losses.` and the name of the function; `also` has equivalent names.
        over: "slots" for `loss(positive (B,), negatives (B, K), ...)`, "vectors" for `loss(vectors (N, d), ...)`.
        without: Promises of `check_loss` that it does not make.
        needs_log_q: Whether it requires `log_q`.

    Examples:
        >>> from naysay import catalog
        >>> catalog.losses()[0].formula
        'sum_j -log sigmoid(p - s_j)'
    """

    over: str
    without: tuple[str, ...] = ()
    needs_log_q: bool = False


@public
@dataclass(frozen=True, kw_only=True)
class Detector(_Row):
    """A detector of false negatives.

    Attributes:
        name: `detectors.` and the name of the class, or the name of a variant; `also` has equivalent names.
        kind: threshold, clustering, mixture, agreement, opinion or identity.
        formula: Its suspicion.
        parts: The composition, as code.

    Examples:
        >>> from naysay import catalog
        >>> catalog.find("IFND")[0].name
        'detectors.Incremental'
    """

    kind: str
    parts: str


@public
@cache
def methods() -> tuple[Method, ...]:
    """All methods, in the order of the documentation.

    Examples:
        >>> from naysay import catalog
        >>> [method.name for method in catalog.methods()[:3]]
        ['uniform', 'popularity', 'user-oriented']
    """
    return tuple(_method(entry) for entry in _table()["methods"])


@public
@cache
def losses() -> tuple[Loss, ...]:
    """All losses, in the order of the documentation.

    Examples:
        >>> from naysay import catalog
        >>> catalog.losses()[0].name
        'losses.bpr'
    """
    return tuple(_entry(Loss, entry) for entry in _table()["losses"])


@public
@cache
def detectors() -> tuple[Detector, ...]:
    """All detectors of false negatives, in the order of the documentation.

    Examples:
        >>> from naysay import catalog
        >>> catalog.detectors()[0].name
        'detectors.Bands'
    """
    return tuple(_entry(Detector, entry) for entry in _table()["detectors"])


@public
def find(name: str) -> tuple[Method | Loss | Detector, Alias | None]:
    """Find a row by any of its names.

    Args:
        name: A name, in any case. The prefixes `losses.` and `detectors.` may be left out; a method has precedence.
            Spellings of the review are known, too.

    Returns:
        The row, and the alias if `name` is one.

    Raises:
        NaysayError: If no row has the name. The message says what is known of a name of `others`, and suggests names
            that begin so, or one that differs by a slip of the keyboard.

    Examples:
        >>> from naysay import catalog
        >>> method, alias = catalog.find("word2vec")
        >>> method.name, alias.name
        ('popularity', 'word2vec')
    """
    row_of, alias_of = _index()
    key = name.casefold()
    key = spellings().get(key, key)
    if key in row_of:
        return row_of[key], alias_of.get(key)
    other = find_other(name)
    if other is not None:
        raise_invalid("name", "a name of a row", f"{name!r}, which is {_STATUS[other.status]}", other.note)
    near = _near(name)
    suggestion = f"Did you mean {' or '.join(map(repr, near))}? " if near else ""
    raise_invalid("name", "a name of the catalogue", repr(name), f"{suggestion}`naysay methods` lists them all.")


def _near(name: str) -> list[str]:
    """Up to three names that begin with `name`, else one that differs from it by a slip of the keyboard.

    Methods often differ by one letter: TransD is not TransE, and MoCo v3 is not MoCo v2. So a short name may only lack
    a letter, have one more, or have two neighbours exchanged.
    """
    rows: tuple[_Row | Other, ...] = (*methods(), *losses(), *detectors(), *others())
    letters = {own: _letters(own) for row in rows for own in row.names}
    letters |= {own: _letters(own) for own in spelled() if _letters(own) not in letters.values()}
    key = _letters(name)
    begun = sorted((own for own in letters if len(key) >= 4 and letters[own].startswith(key)), key=len)
    alike = [own for own in letters if _slipped(key, letters[own])]
    long = {letters[own]: own for own in letters if len(letters[own]) > 11}
    close = difflib.get_close_matches(key, long, n=1, cutoff=_ALIKE)
    return begun[:3] or alike[:1] or [long[near] for near in close]


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9+]", "", name.casefold())


def _slipped(key: str, name: str) -> bool:
    """Whether two words of at least 5 letters differ by one letter that one of them lacks, or by two exchanged."""
    short, long = sorted((key, name), key=len)
    lacks = (long[:i] + long[i + 1 :] for i in range(len(long)))
    exchanged = (long[:i] + long[i + 1 : i + 2] + long[i : i + 1] + long[i + 2 :] for i in range(len(long)))
    return len(short) >= 5 and short in (lacks if len(long) > len(short) else exchanged)


@cache
def _index() -> tuple[dict[str, Method | Loss | Detector], dict[str, Alias]]:
    """{name: row} and {name: alias}, case folded."""
    rows: tuple[Method | Loss | Detector, ...] = (*methods(), *losses(), *detectors())
    row_of = {own.casefold(): row for row in rows for own in row.names}
    for row in rows:
        row_of.setdefault(row.name.removeprefix("losses.").removeprefix("detectors.").casefold(), row)
    return row_of, {alias.name.casefold(): alias for method in methods() for alias in method.aliases}


@cache
def _table() -> dict[str, list[dict[str, Any]]]:
    """The table as it is in the file."""
    return tomllib.loads((_FOLDER / "methods.toml").read_text(encoding="utf-8"))


def _method(entry: Mapping[str, Any]) -> Method:
    """A method with its aliases, which share its program unless they name one."""
    shared = {"program": _file_name(entry["name"])}
    aliases = tuple(_entry(Alias, shared | alias) for alias in entry.get("aliases", ()))
    return _entry(Method, {**entry, "aliases": aliases})


def _entry(kind: type[_Entry], entry: Mapping[str, Any]) -> _Entry:
    """An entry of the table as a frozen object; a missing or a misspelt key is a TypeError that names it."""
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
    return kind(**{"program": _file_name(entry["name"]), **values})


def _file_name(name: str) -> str:
    """`in-batch hard` is the program `in_batch_hard`."""
    return re.sub(r"[^a-z0-9]+", "_", name.casefold()).strip("_")
