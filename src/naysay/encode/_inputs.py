"""Texts as Arrow arrays: compared, hashed and gathered without Python objects."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.checks import at_row, raise_invalid, shown

Ids = NDArray[np.int64]


def text_array(parameter: str, texts: Any) -> Any:
    """Return strings as an Arrow array of large_string, from a list, an array, or an Arrow column.

    An Arrow column is not copied if it is of that type and in one chunk.
    """
    import pyarrow as pa

    if isinstance(texts, pa.ChunkedArray | pa.Array):
        kind = texts.type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            raise_invalid(parameter, "strings", f"an Arrow column of {kind}")
        wide = texts.cast(pa.large_string())
        found = wide.combine_chunks() if isinstance(wide, pa.ChunkedArray) else wide
        if found.null_count:
            rows = np.flatnonzero(found.is_null().to_numpy(zero_copy_only=False))
            raise_invalid(parameter, "strings", at_row(None, rows[0], len(rows)))
        return found
    listed = string_list(parameter, texts)
    try:
        return pa.array(listed, pa.large_string())
    except UnicodeEncodeError as error:
        row = next(row for row, text in enumerate(listed) if text.encode(errors="ignore").decode() != text)
        raise_invalid(parameter, "text that UTF-8 can hold", f"{shown(listed[row])} at row {row} ({error.reason})")


def string_list(parameter: str, texts: Any) -> list[str]:
    """Return strings as a list, from a list or an array; raise for a single string and for other values."""
    if isinstance(texts, str | bytes) or not hasattr(texts, "__len__") or getattr(texts, "shape", None) == ():
        raise_invalid(parameter, "a sequence of strings", shown(texts))
    listed = texts.tolist() if isinstance(texts, np.ndarray) else texts if isinstance(texts, list) else list(texts)
    if not {*map(type, listed)} <= {str}:
        bad = [row for row, text in enumerate(listed) if not isinstance(text, str)]
        if bad:
            raise_invalid(parameter, "strings", at_row(shown(listed[bad[0]]), bad[0], len(bad)))
    return listed


def distinct(texts: Any) -> tuple[Any, Ids]:
    """Return each distinct text once, in order of first occurrence, and for each of `texts` its place among them."""
    coded = texts.dictionary_encode()
    return coded.dictionary, coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)


def texts_hash(texts: Any, rows: Ids) -> str:
    """Return the hash of a list of texts: the distinct ones, by lengths and bytes, and which of them is in each row."""
    digest = hashlib.sha256(len(texts).to_bytes(8, "little"))
    _, ends, data = texts.buffers()  # of an array that begins at offset 0
    edges = np.frombuffer(ends, np.int64, len(texts) + 1) if len(texts) else np.zeros(1, np.int64)
    digest.update(np.diff(edges).astype("<i8").tobytes())
    if edges[-1]:
        digest.update(memoryview(data)[: edges[-1]])
    digest.update(rows.astype("<i8").tobytes())
    return digest.hexdigest()
