"""A retrieval corpus that every Python has: the names of its standard library, and what their docstrings say.

The source is parsed with `ast`. Nothing is imported and nothing is run, so the corpus is the same for everybody who has
the same library, and no module's side effects are met.
"""

from __future__ import annotations

import ast
import re
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

from naysay.checks import raise_invalid

# Tests, other people's packages, and what some distributors leave out: so that a version of Python is one corpus.
_CACHES, _OTHERS = {"__pycache__", "pydoc_data"}, {"dist-packages", "site-packages"}
SKIPPED = _CACHES | _OTHERS | {"distutils", "ensurepip", "idlelib", "lib2to3", "test", "tests", "turtledemo"}
_FEWEST_WORDS = 3  # "Internal." or "**DEPRECATED**" describes nothing
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


@final
@dataclass(frozen=True)
class Library:
    """Pairs of a name and what it does; name i belongs to document i.

    Args:
        names: Dotted, as one would import them: "json.decoder.JSONDecoder.decode".
        queries: The same in words: "json decoder json decoder decode".
        documents: The first paragraph of the docstring, on one line.
        skipped: Files that are no Python of this version.
    """

    names: tuple[str, ...]
    queries: tuple[str, ...]
    documents: tuple[str, ...]
    skipped: int = 0

    def __len__(self) -> int:
        """How many pairs there are."""
        return len(self.names)

    @cached_property
    def text_of(self) -> NDArray[np.int64]:
        """(n,) equal numbers for equal documents. **Pairs of equal number are duplicates**: each is right for the other."""
        return np.unique(np.asarray(self.documents, dtype=np.str_), return_inverse=True)[1].astype(np.int64)

    @property
    def with_duplicate(self) -> int:
        """How many names have a document that another name has too."""
        return int(np.count_nonzero(np.bincount(self.text_of)[self.text_of] > 1))

    @property
    def fingerprint(self) -> str:
        """Eight hex digits of all names and documents: two runs on one corpus show the same."""
        return f"{zlib.crc32(repr((self.names, self.documents)).encode()):08x}"

    def take(self, rows: NDArray[np.int64]) -> Library:
        """Some of the pairs, in the order of `rows`."""
        names, queries, documents = (
            tuple(part[row] for row in rows.tolist()) for part in (self.names, self.queries, self.documents)
        )
        return Library(names, queries, documents, self.skipped)


def read_library(root: str | Path | None = None) -> Library:
    """The public functions, classes and methods below `root`, by default the running Python's standard library.

    A method without a docstring has that of the method it overrides, as `help()` shows it. Its class's bases are looked
    up by name: in the same module, else in the library if only one class is called so. Names that begin with an
    underscore are left out, and docstrings of fewer than three words. Files are read in the order of their paths.

    Cost: one pass over the source, which is parsed a file at a time and not kept.
    """
    folder = Path(sysconfig.get_path("stdlib") if root is None else root)
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
                written.append((module, owners, node.name, _paragraph(node)))
    found = {}
    for module, owners, name, text in written:
        shown = text or (classes.inherited(module, owners[-1], name) if owners else "")
        if len(shown.split()) >= _FEWEST_WORDS:
            found[".".join(filter(None, (module, *owners, name)))] = shown
    if not found:
        advice = "This Python has its library without source; run the demo in another."
        raise_invalid("library", "Python source with docstrings", f"none in {str(folder)!r}", advice)
    return Library(tuple(found), tuple(map(words, found)), tuple(found.values()), skipped)


def words(name: str) -> str:
    """A dotted name in words, in small letters.

    Example:
        >>> words("http.client.HTTPConnection.getresponse"), words("os.path.is_dir")
        ('http client http connection getresponse', 'os path is dir')
    """
    return " ".join(_WORDS.findall(name)).lower()


def _files(folder: Path) -> list[Path]:
    """The Python files below a folder, without skipped folders, in the order of their paths."""
    within = ((path.relative_to(folder).parts, path) for path in folder.rglob("*.py"))
    kept = [(parts, path) for parts, path in within if SKIPPED.isdisjoint(parts[:-1])]
    return [path for _, path in sorted(kept)]


def _definitions(
    node: ast.Module | ast.ClassDef, owners: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], ast.ClassDef | _FUNCTION]]:
    """(classes it stands in, definition) of everything at the top of a module or of a class."""
    for inner in node.body:
        if isinstance(inner, _FUNCTION | ast.ClassDef) and not _changes_a_property(inner):
            yield owners, inner
        if isinstance(inner, ast.ClassDef):
            yield from _definitions(inner, (*owners, inner.name))


def _changes_a_property(node: ast.ClassDef | _FUNCTION) -> bool:
    """Whether it is the setter or the deleter of a property, whose docstring is that of the getter."""
    return any(getattr(mark, "attr", "") in ("setter", "deleter") for mark in node.decorator_list)


def _paragraph(node: ast.ClassDef | _FUNCTION) -> str:
    """The first paragraph of a docstring on one line; empty without one."""
    return " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())


@final
class _Classes:
    """Which class has which bases, and what the docstrings of its methods say; to find what an override inherits."""

    def __init__(self) -> None:
        self._by_name: dict[str, list[tuple[str, list[str], dict[str, str]]]] = {}

    def add(self, module: str, node: ast.ClassDef) -> None:
        bases = [base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "") for base in node.bases]
        said = {inner.name: _paragraph(inner) for inner in node.body if isinstance(inner, _FUNCTION)}
        self._by_name.setdefault(node.name, []).append((module, bases, said))

    def inherited(self, module: str, name: str, method: str, below: Sequence[tuple[str, str]] = ()) -> str:
        """What the nearest base that describes the method says of it, depth first; empty if none does."""
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
        """The class of that name in the module, else the only one there is."""
        known = self._by_name.get(name, [])
        return next((one for one in known if one[0] == module), known[0] if len(known) == 1 else None)
