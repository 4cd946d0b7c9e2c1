"""An index on disk: a folder with faiss's own file and a header, written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np

from naysay.checks import refuse
from naysay.mining.files.vectors import Vectors
from naysay.mining.files.whole_files import draft_of
from naysay.mining.index.rules import KINDS
from naysay.mining.searching.open_pairs import floats

_KIND, _FORMAT = "approximate index", 1
_HEADER, _FILE = "header.json", "index.faiss"
_SAMPLE = 1024  # rows of the corpus that are compared
_METRICS = ("dot", "cosine", "l2")


@final
@dataclass(frozen=True, slots=True)
class About:
    """What an index is of.

    kind       "ivf" or "hnsw"
    metric     "cosine", "dot" or "l2"
    n, width   the shape of the corpus
    largest    the largest norm of its rows
    effort     nprobe or efSearch
    seed       that it was built with
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


def save(owner: str, path: Path, index: Any, about: About, corpus: Vectors) -> None:
    """Write the folder, by way of a draft beside it."""
    import faiss

    if path.exists() and not _is_ours(path):
        refuse(owner, "path", "new, or an index that naysay wrote", repr(str(path)))
    if not path.parent.is_dir():
        refuse(owner, "path", "in an existing folder", repr(str(path)))
    content = content_of(corpus)
    with draft_of(owner, path) as draft:
        draft.mkdir()
        try:
            faiss.write_index(index, str(draft / _FILE))
        except RuntimeError as error:
            refuse(owner, "path", "a place that can be written to", repr(str(path)), str(error).splitlines()[-1])
        header = {"kind": _KIND, "format": _FORMAT, "corpus": content, "file": _digest(draft / _FILE)}
        (draft / _HEADER).write_text(json.dumps({**header, "about": asdict(about)}, indent=1) + "\n")
        for name in (_FILE, _HEADER):
            _to_disk(draft / name)


def about(owner: str, path: Path, corpus: Vectors) -> About:
    """What the folder at `path` holds; refused if it is none of ours, or of another corpus."""
    header = _header(path)
    if header is None:
        refuse(owner, "path", "an index that naysay wrote", repr(str(path)))
    found = _about(header)
    if found is None or header["format"] != _FORMAT:
        refuse(owner, "path", f"an index with a sound header of format {_FORMAT}", repr(str(path / _HEADER)))
    if (corpus.n, corpus.width) != (found.n, found.width):
        got = f"{corpus.n} x {corpus.width}"
        refuse(owner, "corpus", f"the one of the index, {found.n} x {found.width}", got)
    if content_of(corpus) != header["corpus"]:
        refuse(owner, "corpus", "the one of the index", "other values, or another dtype", "Build a new index.")
    return found


def read(owner: str, path: Path, found: About, corpus: Vectors) -> Any:
    """The index, faiss's own; a file that changed since it was written is refused before faiss reads it."""
    import faiss

    header = _header(path) or {}
    file = path / _FILE
    if not file.is_file() or _digest(file) != header.get("file"):
        refuse(owner, "path", "a folder as it was written", f"{_FILE}, missing or changed")
    index = faiss.read_index(str(file))
    width = found.width + (found.metric == "dot")
    if (index.ntotal, index.d, hasattr(index, "nlist")) != (corpus.n, width, found.kind == "ivf"):
        refuse(owner, "path", "a folder as it was written", f"{_FILE} of {index.ntotal} x {index.d}")
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
