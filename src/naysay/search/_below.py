"""Searches below a score: a plain wrapper that deepens. To be deleted with its last caller."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, check_all, public, raise_invalid
from naysay.positives import Positives
from naysay.search._survey import Survey
from naysay.search.exact import Exact, Found
from naysay.search.vectors import as_vectors

_DEEPER = 4  # times the depth, for the rows that have too few below their limit


@public
def search_below(
    queries: Any,
    corpus: Any,
    depth: int,
    below: Any,
    *,
    metric: str = "cosine",
    exclude: Positives | None = None,
    budget: int | None = None,
) -> tuple[Found, NDArray[np.int64]]:
    """Find the `depth` best corpus rows of each query that score at most `below`, and count those that score higher."""
    return SearchOptions(metric, exclude, budget=budget).run(queries, corpus, depth, below)


@final
@dataclass(frozen=True, slots=True, eq=False)
class SearchOptions:
    """The options of a search."""

    metric: str = "cosine"
    exclude: Positives | None = None
    engine: str = "auto"
    budget: int | None = None
    threads: int | None = None
    on_progress: Callable[[float], None] | None = None
    device: Any = None
    surveys: tuple[Survey, Survey] | None = None

    def run(self, queries: Any, corpus: Any, depth: int, below: Any = None) -> tuple[Found, NDArray[np.int64]]:
        """Search, deeper for rows that have fewer than `depth` at most `below`."""
        limits: dict[str, Any] = {"engine": self.engine, "budget": self.budget, "threads": self.threads}
        items = as_vectors("corpus", corpus)
        measured = None if self.surveys is None else self.surveys[1]
        exact = Exact(items, self.metric, **limits, device=self.device, measured=measured)
        vectors = as_vectors("queries", queries)
        found = exact.search(vectors, depth, exclude=self.exclude, on_progress=self.on_progress)
        above = np.zeros(vectors.n, np.int64)
        if below is None:
            return found, above
        caps = as_array("below", to_numpy(below))
        if caps.shape != (vectors.n,) or caps.dtype.kind != "f":
            raise_invalid("below", f"({vectors.n},) numbers, one for each query", f"shape {caps.shape} {caps.dtype}")
        check_all("below", caps, ~np.isnan(caps), "numbers")
        caps = caps.astype(np.float32)
        result, rows, reach = Found.empty(vectors.n, depth), np.arange(vectors.n), depth
        while True:
            higher = np.count_nonzero(found.filled & (found.scores > caps[rows, None]), axis=1)
            done = (higher + depth <= reach) | (found.ids[:, -1] < 0) | (reach >= items.n)
            for row in np.flatnonzero(done):
                kept = slice(higher[row], min(higher[row] + depth, reach))
                size = kept.stop - kept.start
                result.ids[rows[row], :size], result.scores[rows[row], :size] = (
                    found.ids[row, kept],
                    found.scores[row, kept],
                )
            above[rows[done]] = higher[done]
            rows, reach = rows[~done], min(reach * _DEEPER, items.n)
            if not len(rows):
                return result, above
            found = exact.search(vectors.take(rows), reach, exclude=_rows_of(self.exclude, rows))


def _rows_of(known: Positives | None, rows: NDArray[np.int64]) -> Positives | None:
    """The pairs of some anchors, numbered from 0."""
    if known is None:
        return None
    anchors, items = known.pairs()
    place = np.full(max(known.n_anchors, int(rows.max()) + 1), -1)
    place[rows] = np.arange(len(rows))
    kept = place[anchors] >= 0
    return Positives.from_pairs(place[anchors[kept]], items[kept], len(rows), known.n_items)
