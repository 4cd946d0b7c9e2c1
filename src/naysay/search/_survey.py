"""One pass over all vectors before a search: invalid rows raise, norms are measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import frozen
from naysay.checks import raise_invalid
from naysay.kernels.dots import COSINE, DOT, L2, norms
from naysay.search._pair_scores import floats
from naysay.search._resources import Workers
from naysay.search.vectors import Vectors

_BLOCK = 1 << 21  # numbers of a block
_SMALLEST, _LARGEST = 1e-140, 1e140  # norms whose squares float64 holds with all its digits
_FLOAT32_MAX = float(np.finfo(np.float32).max)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """The largest norm, and all norms where the vectors are in memory anyway."""

    largest: float
    norms: NDArray[np.float64] | None


def survey(parameter: str, vectors: Vectors, metric: int, threads: int) -> Survey:
    """Measure the norms of vectors in one pass; raise if a row has no score: the first bad row and how many."""
    step = max(1, _BLOCK // vectors.width)
    all_norms = np.empty(vectors.n if vectors.whole is not None else 0)
    largest, bad, first = 0.0, 0, None
    with Workers(threads, torch=False) as workers:
        for start in range(0, vectors.n, step):
            rows = floats(vectors.rows(start, start + step))
            block = all_norms[start : start + step] if vectors.whole is not None else np.empty(len(rows))
            workers.rows(norms, len(rows), frozen(rows), block)
            wrong = ~(block < _LARGEST)
            if metric == COSINE:
                wrong |= block < _SMALLEST
            if wrong.any():
                places = np.flatnonzero(wrong)
                bad += len(places)
                if first is None:
                    first = (start + int(places[0]), *_reason(metric, rows[places[0]]))
            largest = max(largest, float(block[~wrong].max(initial=0.0)))
    if first is not None:
        row, rule, got = first
        raise_invalid(parameter, rule, f"{got} at row {row} ({bad} such row{'s' if bad > 1 else ''})")
    return Survey(largest, all_norms if vectors.whole is not None else None)


def survey_both(queries: Vectors, corpus: Vectors, metric: int, threads: int) -> tuple[Survey, Survey]:
    """Survey both sides of a search; raise also if a score can be too large for float32."""
    left, right = (survey(name, side, metric, threads) for name, side in (("queries", queries), ("corpus", corpus)))
    check_score_range(metric, left.largest, right.largest)
    return left, right


def check_score_range(metric: int, query_norm: float, corpus_norm: float) -> None:
    """Raise if vectors up to these norms can have scores that float32 does not hold."""
    largest = {DOT: query_norm * corpus_norm, COSINE: 1.0, L2: query_norm + corpus_norm}[metric]
    if not largest < _FLOAT32_MAX:
        advice = "Scale the vectors down."
        raise_invalid("queries", "of norms whose scores float32 holds", f"scores up to {largest:.3g}", advice)


def _reason(metric: int, row: NDArray[Any]) -> tuple[str, str]:
    """The rule that a row breaks, and what it has instead."""
    odd = row[~np.isfinite(row)]
    if len(odd):
        return "finite", str(odd[0])
    if metric == COSINE and not row.any():
        return "without zero vectors, which have no cosine", "a zero vector"
    return f"of norms between {_SMALLEST} and {_LARGEST}", f"a largest coordinate of {np.abs(row).max()}"
