"""The look at all vectors before a search: what is not finite, zero or too large is refused, norms are measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import frozen
from naysay.checks import raise_invalid
from naysay.kernels.dots import COSINE, norms
from naysay.search._unresolved_pairs import floats
from naysay.search._workers import Workers
from naysay.search.vectors import Vectors

_BLOCK = 1 << 21  # numbers of a block
_LEAST, _MOST = 1e-140, 1e140  # norms whose squares float64 holds with all its digits


@final
@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """What was seen: the largest norm, and all norms where the vectors are in memory anyway."""

    largest: float
    norms: NDArray[np.float64] | None


def survey(parameter: str, vectors: Vectors, metric: int, workers: Workers) -> Survey:
    """Refuse vectors that have no score, the first bad row and how many; else their norms. One pass."""
    step = max(1, _BLOCK // vectors.width)
    keep = np.empty(vectors.n if vectors.whole is not None else 0)
    largest, bad, first = 0.0, 0, None
    for start in range(0, vectors.n, step):
        rows = floats(vectors.rows(start, start + step))
        found = keep[start : start + step] if vectors.whole is not None else np.empty(len(rows))
        workers.rows(norms, len(rows), frozen(rows), found)
        wrong = ~(found < _MOST)
        if metric == COSINE:
            wrong |= found < _LEAST
        if wrong.any():
            places = np.flatnonzero(wrong)
            bad += len(places)
            if first is None:
                first = (start + int(places[0]), *_reason(metric, rows[places[0]]))
        largest = max(largest, float(found[~wrong].max(initial=0.0)))
    if first is not None:
        row, rule, got = first
        raise_invalid(parameter, rule, f"{got} at row {row} ({bad} such row{'s' if bad > 1 else ''})")
    return Survey(largest, keep if vectors.whole is not None else None)


def _reason(metric: int, row: NDArray[Any]) -> tuple[str, str]:
    """The rule that a row breaks, and what it has instead."""
    odd = row[~np.isfinite(row)]
    if len(odd):
        return "finite", str(odd[0])
    if metric == COSINE and not row.any():
        return "without zero vectors, which have no cosine", "a zero vector"
    return f"of norms between {_LEAST} and {_MOST}", f"a largest coordinate of {np.abs(row).max()}"
