"""Vectors of the training set's rows: opened, refused if they have no score, and found by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from naysay.auditing._names_file import read_names
from naysay.auditing._training_set import Ids
from naysay.checks import raise_invalid, shown
from naysay.kernels.threads import threads
from naysay.search._pair_scores import METRICS
from naysay.search._survey import survey
from naysay.search.vectors import Vectors, as_vectors


def opened(parameter: str, given: Any, metric: str) -> Vectors:
    """Vectors that all have a score; the first bad row is refused, and how many there are. One pass."""
    vectors = as_vectors(parameter, given)
    survey(parameter, vectors, METRICS[metric], threads())
    return vectors


def rows_of(what: str, size: int, names: list[str] | None, given: Any, vectors: Vectors) -> Ids:
    """(size,) the row of the vectors that belongs to each query, or document, of the set.

    Args:
        what: "query" or "corpus".
        names: What the set calls them; None where it has row numbers.
        given: What the vectors' rows are called, in order, or a file of that (`read_names`); None: row i is number
            i of the set, in its own order.
    """
    rows = np.arange(size)
    if given is None:
        named = names is not None
        if vectors.n < size or (named and vectors.n != size):
            rule = f"of {'' if named else 'at least '}{size} rows, like the set"
            advice = f"Pass {what}_ids, the name of each row." if named else ""
            raise_invalid(f"{what}_vectors", rule, vectors.n, advice)
        return rows
    parameter = f"{what}_ids"
    if isinstance(given, str | Path):
        given = read_names(parameter, Path(given))
    if names is None:
        raise_invalid(parameter, "None where the set has row numbers", f"{len(given)} names")
    if isinstance(given, bytes) or not isinstance(given, Sequence | np.ndarray):
        raise_invalid(parameter, "a list of names, or a file of them", shown(given))
    if len(given) != vectors.n:
        raise_invalid(parameter, f"{vectors.n} names, one for each row of {what}_vectors", len(given))
    places = {name: row for row, name in enumerate(map(str, given))}
    found = np.fromiter((places.get(name, -1) for name in names), np.int64, size)
    if (found < 0).any():
        first = int(np.argmax(found < 0))
        got = f"none for {shown(names[first])} ({int((found < 0).sum())} such names)"
        raise_invalid(parameter, "names of all rows of the set", got)
    return found


def moved(vectors: Vectors, rows: Ids) -> Vectors:
    """The vectors in the order of the set: row i is that of rows[i], and rows that the set does not name come last."""
    if len(rows) == vectors.n and (rows == np.arange(len(rows))).all():
        return vectors
    rest = np.setdiff1d(np.arange(vectors.n), rows)
    order = np.concatenate([rows, rest])

    def some(ids: Ids) -> Any:
        wanted, places = np.unique(ids, return_inverse=True)
        return np.asarray(vectors.take(wanted))[places.reshape(-1)]

    def read(start: int, stop: int) -> Any:
        return some(order[start:stop])

    return Vectors(len(order), vectors.width, vectors.dtype, read, lambda ids: some(order[ids]))
