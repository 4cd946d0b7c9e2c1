"""What a query may not have: how many corpus rows, and which of those that were found."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid
from naysay.positives import Positives


def excluded_counts(exclude: Positives | None, n_queries: int, n_corpus: int) -> NDArray[np.int64]:
    """(n_queries,) how many corpus rows each may not have; a query past the last anchor has none."""
    if exclude is None:
        return np.zeros(n_queries, np.int64)
    if not isinstance(exclude, Positives):
        raise_invalid("exclude", "a Positives, or None", type(exclude).__name__)
    if exclude.n_anchors > n_queries or exclude.n_items > n_corpus:
        rule = f"of at most {n_queries} anchors and {n_corpus} items, the rows of queries and corpus"
        raise_invalid("exclude", rule, f"{exclude.n_anchors} x {exclude.n_items}")
    return np.pad(np.diff(exclude.indptr), (0, n_queries - exclude.n_anchors))


def is_excluded(exclude: Positives, rows: NDArray[np.int64], ids: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(n, m) which of these pairs are excluded; ids past the last item, and -1, are none."""
    inside = np.where(ids < exclude.n_items, ids, -1)
    inside[rows >= exclude.n_anchors] = -1
    return exclude.contains(np.minimum(rows, max(0, exclude.n_anchors - 1)), inside, relation="any")
