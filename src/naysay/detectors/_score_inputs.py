"""What users hand in as scores: an array, a list, a file, or a stream of arrays."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from naysay.checks import raise_invalid, shown
from naysay.detectors._score_blocks import ScoreBlocks, Seen, plain_scores, sliced
from naysay.detectors._score_files import mapped, parquet


def open_scores(scores: Any, column: str | None = None, seen: Seen | None = None) -> ScoreBlocks:
    """What a user hands in as scores; files are opened, and refused, here."""
    if isinstance(scores, ScoreBlocks):
        return scores
    kind = Path(scores).suffix.lower() if isinstance(scores, str | os.PathLike) else ""
    if column is not None and kind != ".parquet":
        raise_invalid("column", "left out, unless scores is a .parquet file", shown(column))
    if isinstance(scores, str | os.PathLike):
        if kind not in (".npy", ".parquet"):
            raise_invalid("scores", "a file that ends in .npy or .parquet", shown(str(scores)))
        if not _is_file(Path(scores)):
            raise_invalid("scores", "an existing file", repr(str(scores)))
        return parquet(Path(scores), column, seen) if kind == ".parquet" else mapped(Path(scores), seen)
    if isinstance(scores, list | tuple) and len(scores) and _is_block(scores[0]):
        return ScoreBlocks(lambda: iter(scores), again=True, rows=None, seen=seen)
    if isinstance(scores, list | tuple | range | memoryview | array) or _is_array(scores):
        return sliced(scores if _is_lazy(scores) else plain_scores(scores), seen)
    if not isinstance(scores, Iterable):
        rule = "an array, a list, a file or an iterable of arrays"
        raise_invalid("scores", rule, f"a {type(scores).__name__}")
    return ScoreBlocks(lambda: iter(scores), again=False, rows=None, seen=seen)


def _is_array(scores: Any) -> bool:
    """What NumPy reads as one array: its own, tensors, columns of Arrow and of data frames."""
    return hasattr(scores, "__array__") and not isinstance(scores, np.generic)


def _is_lazy(scores: Any) -> bool:
    """Whether an array is read from disk as it is sliced: sets of HDF5 and Zarr, which need not fit into memory."""
    return hasattr(scores, "chunks") and hasattr(scores, "ndim")


def _is_block(first: Any) -> bool:
    """Whether the first of a list is an array of scores, and not a score: NumPy has scalars that are arrays of none."""
    return _is_array(first) and getattr(first, "ndim", 1) > 0


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that is too long for any file
        return False
