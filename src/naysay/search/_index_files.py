"""An index on disk: a folder with faiss's own file and a header, written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np

from naysay.checks import raise_invalid
from naysay.formats._whole_files import draft_of
from naysay.search._index_rules import KINDS
from naysay.search._unresolved_pairs import floats
from naysay.search.vectors import Vectors

_KIND, _FORMAT = "approximate index", 1
_HEADER, _FILE = "header.json", "index.faiss"
_SAMPLE = 1024  # rows of the corpus that are compared
_METRICS = ("dot", "cosine", "l2")


@final
@dataclass(frozen=True, slots=True)
class About:
    """What an index is of.

    Args:
        kind: "ivf" or "hnsw".
        metric: "cosine", "dot" or "l2".
        n: The shape of the corpus.
        width: The shape of the corpus.
        largest: The largest norm of its rows.
        effort: Nprobe or efSearch.
        seed: That it was built with.
    """

    kind: str
    metric: str
    n: int
    width: int
    largest: float
    effort: int
    seed: int

    def at(self, effort: int) -> About:
        """The same with another effort."""
        return replace(self, effort=effort)


def save(path: Path, index: Any, about: About, corpus: Vectors) -> None:
    """Write the folder, by way of a draft beside it."""
    import faiss

    if path.exists() and not _is_ours(path):
        raise_invalid("path", "new, or an index that naysay wrote", repr(str(path)))
    if not path.parent.is_dir():
        raise_invalid("path", "in an existing folder", repr(str(path)))
    content = content_of(corpus)
    with draft_of(path) as draft:
        draft.mkdir()
        try:
            faiss.write_index(index, str(draft / _FILE))
        except RuntimeError as error:
            raise_invalid("path", "a place that can be written to", repr(str(path)), str(error).splitlines()[-1])
        header = {"kind": _KIND, "format": _FORMAT, "corpus": content, "file": _digest(draft / _FILE)}
        (draft / _HEADER).write_text(json.dumps({**header, "about": asdict(about)}, indent=1) + "\n")
        for name in (_FILE, _HEADER):
            _to_disk(draft / name)


def about(path: Path, corpus: Vectors) -> About:
    """What the folder at `path` holds; refused if it is none of ours, or of another corpus."""
    header = _header(path)
    if header is None:
        raise_invalid("path", "an index that naysay wrote", repr(str(path)))
    found = _about(header)
    if found is None or header["format"] != _FORMAT:
        raise_invalid("path", f"an index with a sound header of format {_FORMAT}", repr(str(path / _HEADER)))
    if (corpus.n, corpus.width) != (found.n, found.width):
        got = f"{corpus.n} x {corpus.width}"
        raise_invalid("corpus", f"the one of the index, {found.n} x {found.width}", got)
    if content_of(corpus) != header["corpus"]:
        raise_invalid("corpus", "the one of the index", "other values, or another dtype", "Build a new index.")
    return found


def read(path: Path, found: About, corpus: Vectors) -> Any:
    """The index, faiss's own; a file that changed since it was written is refused before faiss reads it."""
    import faiss

    header = _header(path) or {}
    file = path / _FILE
    if not file.is_file() or _digest(file) != header.get("file"):
        raise_invalid("path", "a folder as it was written", f"{_FILE}, missing or changed")
    index = faiss.read_index(str(file))
    width = found.width + (found.metric == "dot")
    if (index.ntotal, index.d, hasattr(index, "nlist")) != (corpus.n, width, found.kind == "ivf"):
        raise_invalid("path", "a folder as it was written", f"{_FILE} of {index.ntotal} x {index.d}")
    return index


def content_of(corpus: Vectors) -> str:
    """A hash of the dtype and of up to 1,024 rows, the first and the last among them."""
    some = np.unique(np.linspace(0, corpus.n - 1, min(_SAMPLE, corpus.n)).astype(np.int64))
    digest = hashlib.sha256(str(corpus.dtype).encode())
    digest.update(floats(corpus.take(some)).tobytes())
    return digest.hexdigest()


def _header(path: Path) -> dict[str, Any] | None:
    """The header of an index of ours, or None."""
    try:
        found = json.loads((path / _HEADER).read_text())
    except (OSError, ValueError):
        return None
    sound = isinstance(found, dict) and {"kind", "format", "corpus", "file", "about"} <= found.keys()
    return found if sound and found["kind"] == _KIND else None


def _is_ours(path: Path) -> bool:
    return _header(path) is not None


def _about(header: dict[str, Any]) -> About | None:
    """What the header says, or None where it says it wrongly."""
    try:
        found = About(**header["about"])
    except TypeError:
        return None
    whole = (found.n, found.width, found.effort, found.seed)
    numbers = all(type(number) is int and number >= 0 for number in whole) and type(found.largest) is float
    names = found.kind in KINDS[1:] and found.metric in _METRICS
    return found if names and numbers and found.effort > 0 and 0 <= found.largest < np.inf else None


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _to_disk(file: Path) -> None:
    with file.open("rb") as stream:
        os.fsync(stream.fileno())
