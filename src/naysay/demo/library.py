"""Texts that every Python has: the docstrings of its standard library, with the names that they belong to.

The source is parsed with `ast`. Nothing is imported or run, so the corpus is the same for everybody who has the same
library, and no module has side effects.
"""

from __future__ import annotations

import ast
import sysconfig
import warnings
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import check_range, public, raise_invalid, whole_numbers
from naysay.files import as_path
from naysay.text import short_repr

# Tests, third-party packages, and what some distributors leave out, so that a version of Python is one corpus.
_CACHES, _OTHERS = {"__pycache__", "pydoc_data"}, {"dist-packages", "site-packages"}
SKIPPED = _CACHES | _OTHERS | {"distutils", "ensurepip", "idlelib", "lib2to3", "test", "tests", "turtledemo"}
_FEWEST_WORDS = 3  # "Internal." or "**DEPRECATED**" describes nothing
_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


@final
@public
@dataclass(frozen=True)
class Library:
    """Names and their docstrings; name i belongs to document i.

    Args:
        names: Dotted, as one would import them: "json.decoder.JSONDecoder.decode".
        documents: The docstring, on one line.
        skipped: Number of files that this version of Python cannot parse.

    Examples:
        >>> library = Library(("a.get", "b.get", "put"), ("Get it.", "Get it.", "Put it."))
        >>> len(library), library.with_duplicate
        (3, 2)
    """

    names: tuple[str, ...]
    documents: tuple[str, ...]
    skipped: int = 0

    __repr__ = short_repr

    def __len__(self) -> int:
        """The number of pairs."""
        return len(self.names)

    @cached_property
    def text_of(self) -> NDArray[np.int64]:
        """(n,) equal numbers for equal documents. Names with the same number are duplicates of each other."""
        return np.unique(np.asarray(self.documents, dtype=np.str_), return_inverse=True)[1].astype(np.int64)

    @property
    def with_duplicate(self) -> int:
        """The number of names whose document another name has, too."""
        return int(np.count_nonzero(np.bincount(self.text_of)[self.text_of] > 1))

    @property
    def fingerprint(self) -> str:
        """Eight hex digits of all names and documents; equal for equal corpora."""
        return f"{zlib.crc32(repr((self.names, self.documents)).encode()):08x}"

    def take(self, rows: NDArray[np.int64]) -> Library:
        """Return some of the pairs.

        Args:
            rows: (m,) places of the pairs.
        """
        places = whole_numbers("rows", to_numpy(rows))
        check_range("rows", places, len(self), "pairs")
        names, documents = (tuple(part[row] for row in places.tolist()) for part in (self.names, self.documents))
        return Library(names, documents, self.skipped)


@public
def read_library(root: str | Path | None = None) -> Library:
    """Read the public functions, classes and methods below a folder.

    A method without a docstring has that of the method it overrides, as `help()` shows it. The bases of its class are
    found by name: in the same module, else in the library if only one class has that name. Names that begin with an
    underscore and docstrings of fewer than three words are left out. Files are read in the order of their paths.

    Cost: one pass over the source, which is parsed a file at a time and not kept.

    Args:
        root: The folder; None: the standard library of the running Python.

    Examples:
        >>> import json
        >>> library = read_library(Path(json.__file__).parent)
        >>> library.documents[library.names.index("loads")][:26]
        'Deserialize ``s`` (a ``str'
    """
    folder = as_path("root", sysconfig.get_path("stdlib") if root is None else root)
    written, classes, skipped = [], _Classes(), 0
    for path in _files(folder):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # as errors they would drop the file, and change the corpus
                tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):
            skipped += 1
            continue
        parts = path.relative_to(folder).with_suffix("").parts
        module = ".".join(part for part in parts if part != "__init__")
        for owners, node in _definitions(tree):
            if isinstance(node, ast.ClassDef):
                classes.add(module, node)
            if not any(name.startswith("_") for name in (*owners, node.name)):
                written.append((module, owners, node.name, _docstring(node)))
    document_of = {}
    for module, owners, name, text in written:
        shown = text or (classes.inherited(module, owners[-1], name) if owners else "")
        if len(shown.split()) >= _FEWEST_WORDS:
            document_of[".".join(filter(None, (module, *owners, name)))] = shown
    if not document_of:
        advice = "This Python has its library without source; use another."
        raise_invalid("root", "a folder of Python source with docstrings", f"none in {str(folder)!r}", advice)
    return Library(tuple(document_of), tuple(document_of.values()), skipped)


def _files(folder: Path) -> list[Path]:
    """Return the Python files below a folder, without skipped folders, in the order of their paths."""
    within = ((path.relative_to(folder).parts, path) for path in folder.rglob("*.py"))
    kept = [(parts, path) for parts, path in within if SKIPPED.isdisjoint(parts[:-1])]
    return [path for _, path in sorted(kept)]


def _definitions(
    node: ast.Module | ast.ClassDef, owners: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], ast.ClassDef | _FUNCTION]]:
    """Yield (enclosing classes, definition) of everything at the top level of a module or of a class."""
    for inner in node.body:
        if isinstance(inner, _FUNCTION | ast.ClassDef) and not _changes_a_property(inner):
            yield owners, inner
        if isinstance(inner, ast.ClassDef):
            yield from _definitions(inner, (*owners, inner.name))


def _changes_a_property(node: ast.ClassDef | _FUNCTION) -> bool:
    """Return whether it is the setter or deleter of a property, whose docstring is that of the getter."""
    return any(getattr(mark, "attr", "") in ("setter", "deleter") for mark in node.decorator_list)


def _docstring(node: ast.ClassDef | _FUNCTION) -> str:
    """Return a docstring on one line; empty without one."""
    return " ".join((ast.get_docstring(node) or "").split())


@final
class _Classes:
    """The bases of each class and the docstrings of its methods, to find what an override inherits."""

    def __init__(self) -> None:
        self._by_name: dict[str, list[tuple[str, list[str], dict[str, str]]]] = {}

    def add(self, module: str, node: ast.ClassDef) -> None:
        bases = [base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "") for base in node.bases]
        docstrings = {inner.name: _docstring(inner) for inner in node.body if isinstance(inner, _FUNCTION)}
        self._by_name.setdefault(node.name, []).append((module, bases, docstrings))

    def inherited(self, module: str, name: str, method: str, below: Sequence[tuple[str, str]] = ()) -> str:
        """Return the docstring of the nearest base that has one for the method, depth first; empty if none has."""
        home = self._home(module, name)
        if home is None or (home[0], name) in below:  # a class can have a base of its own name
            return ""
        for base in home[1]:
            there = self._home(home[0], base)
            if there is not None:
                text = there[2].get(method) or self.inherited(there[0], base, method, (*below, (home[0], name)))
                if text:
                    return text
        return ""

    def _home(self, module: str, name: str) -> tuple[str, list[str], dict[str, str]] | None:
        """Return the class of that name in the module, else the only one of that name."""
        known = self._by_name.get(name, [])
        return next((one for one in known if one[0] == module), known[0] if len(known) == 1 else None)
