"""An index on disk: a folder with faiss's own file and a header, written whole or not at all."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from naysay.checks import raise_invalid
from naysay.files import HEADER, digest_of, draft_of, read_header, sync
from naysay.search._index_rules import KINDS
from naysay.search._pair_scores import METRICS, floats
from naysay.search.vectors import Vectors

_KIND, _FORMAT = "approximate index", 1
_FILE = "index.faiss"
_SAMPLE = 1024  # rows of the corpus that are compared


@final
@dataclass(frozen=True, slots=True)
class About:
    """How an index was built, and of what.

    Args:
        kind: "ivf" or "hnsw".
        metric: "cosine", "dot" or "l2".
        n: Rows of the corpus.
        width: Coordinates of a row.
        largest: The largest norm of its rows.
        effort: nprobe or efSearch.
        seed: The seed of the build.
    """

    kind: str
    metric: str
    n: int
    width: int
    largest: float
    effort: int
    seed: int


def save(path: Path, index: Any, about: About, corpus: Vectors) -> None:
    """Write the folder, by way of a draft beside it."""
    import faiss

    if path.exists() and _header(path) is None:
        raise_invalid("path", "new, or an index that naysay wrote", repr(str(path)))
    if not path.parent.is_dir():
        raise_invalid("path", "in an existing folder", repr(str(path)))
    content = content_of(corpus)
    with draft_of(path, "path") as draft:
        draft.mkdir()
        try:
            faiss.write_index(index, str(draft / _FILE))
        except RuntimeError as error:
            raise_invalid("path", "a place that can be written to", repr(str(path)), str(error).splitlines()[-1])
        header = {"kind": _KIND, "format": _FORMAT, "corpus": content, "file": digest_of(draft / _FILE)}
        (draft / HEADER).write_text(json.dumps({**header, "about": asdict(about)}, indent=1) + "\n")
        for name in (_FILE, HEADER):
            sync(draft / name)


def about(path: Path, corpus: Vectors) -> About:
    """Return how the index at `path` was built; raise if naysay did not write it, or if it is of another corpus."""
    header = _header(path)
    if header is None:
        raise_invalid("path", "an index that naysay wrote", repr(str(path)))
    found = _about(header)
    if found is None or header["format"] != _FORMAT:
        raise_invalid("path", f"an index with a sound header of format {_FORMAT}", repr(str(path / HEADER)))
    if (corpus.n, corpus.width) != (found.n, found.width):
        got = f"{corpus.n} x {corpus.width}"
        raise_invalid("corpus", f"the one of the index, {found.n} x {found.width}", got)
    if content_of(corpus) != header["corpus"]:
        raise_invalid("corpus", "the one of the index", "other values, or another dtype", "Build a new index.")
    return found


def read(path: Path, found: About, corpus: Vectors) -> Any:
    """Read the faiss index; raise before faiss reads it if the file has changed since it was written."""
    import faiss

    header = _header(path) or {}
    file = path / _FILE
    if not file.is_file() or digest_of(file) != header.get("file"):
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
    """The header of an index that naysay wrote, or None."""
    header = read_header(path, ("kind", "format", "corpus", "file", "about"))
    return header if header is not None and header["kind"] == _KIND else None


def _about(header: dict[str, Any]) -> About | None:
    """The entry `about` of the header, or None if it is damaged."""
    try:
        found = About(**header["about"])
    except TypeError:
        return None
    whole = (found.n, found.width, found.effort, found.seed)
    numbers = all(type(number) is int and number >= 0 for number in whole) and type(found.largest) is float
    names = found.kind in KINDS[1:] and found.metric in METRICS
    return found if names and numbers and found.effort > 0 and 0 <= found.largest < np.inf else None
