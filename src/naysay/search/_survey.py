"""One pass over vectors before a search: their norms, and whether each has a score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import at_row, raise_invalid
from naysay.kernels.dots import COSINE, DOT, L2
from naysay.search import _plain as plain
from naysay.search._scores import Workers
from naysay.search.vectors import Vectors, floats

_NUMBERS_AT_ONCE = 1 << 21  # coordinates that are checked at a time
_FEW_NUMBERS = 1 << 18  # coordinates that one thread checks sooner than two
SMALLEST_NORM = 1e-140  # below it, the square of a norm loses digits in float64
_LARGEST_NORM = 1e140  # above it, too
_FLOAT32_MAX = float(np.finfo(np.float32).max)
# Scores below it differ by less than the smallest normal float32, if by anything.
_FLOAT32_LEAST = float(np.finfo(np.float32).tiny) / float(np.finfo(np.float32).eps)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """The largest norm, and all norms where the vectors are in memory anyway."""

    largest: float
    norms: NDArray[np.float64] | None


@final
@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """What a pass over vectors, or over a part of them, found."""

    survey: Survey
    bad: int  # rows that have no score
    first: tuple[int, str, str] | None  # the first of them: its number, the rule that it breaks, what it has instead


def measured(vectors: Vectors, metric: int, threads: int) -> Measured:
    """Measure the norms of vectors in one pass, and look for rows that have no score."""
    rows_at_once = max(1, _NUMBERS_AT_ONCE // vectors.width)
    all_norms = None if vectors.whole is None else np.empty(vectors.n)
    largest, bad, first = 0.0, 0, None
    with Workers(threads if vectors.n * vectors.width > _FEW_NUMBERS else 1, torch=False) as workers:
        for start in range(0, vectors.n, rows_at_once):
            rows = floats(vectors.rows(start, start + rows_at_once))
            norms = np.empty(len(rows))
            workers.rows(plain.fill_norms, len(rows), rows, norms)
            if all_norms is not None:
                all_norms[start : start + len(rows)] = norms
            wrong = ~(norms < _LARGEST_NORM)
            if metric == COSINE:
                wrong |= norms < SMALLEST_NORM
            if wrong.any():
                places = np.flatnonzero(wrong)
                bad += len(places)
                if first is None:
                    first = (start + int(places[0]), *_reason(metric, rows[places[0]]))
            largest = max(largest, float(norms[~wrong].max(initial=0.0)))
    return Measured(Survey(largest, all_norms), bad, first)


def check_measured(parameter: str, parts: Sequence[Measured]) -> float:
    """Return the largest norm of all parts; raise if a row has no score: the first bad row and how many there are."""
    first = next((part.first for part in parts if part.first is not None), None)
    if first is not None:
        row, rule, got = first
        raise_invalid(parameter, rule, at_row(got, row, sum(part.bad for part in parts)))
    return max((part.survey.largest for part in parts), default=0.0)


def survey(parameter: str, vectors: Vectors, metric: int, threads: int) -> Survey:
    """Measure the norms of vectors in one pass; raise if a row has no score."""
    found = measured(vectors, metric, threads)
    check_measured(parameter, [found])
    return found.survey


def check_score_range(metric: int, query_norm: float, corpus_norm: float) -> None:
    """Raise if vectors of up to these norms can have scores too large for float32, or only scores too small for it."""
    largest = {DOT: query_norm * corpus_norm, COSINE: 1.0, L2: query_norm + corpus_norm}[metric]
    if not largest < _FLOAT32_MAX:
        advice = "Scale the vectors down."
        raise_invalid("queries", "of norms whose scores float32 holds", f"scores up to {largest:.3g}", advice)
    if 0 < largest < _FLOAT32_LEAST:
        rule = "of norms whose scores float32 can tell apart"
        raise_invalid("queries", rule, f"scores up to {largest:.3g}", "Scale the vectors up, e.g. by 1 / largest norm.")


def _reason(metric: int, row: NDArray[Any]) -> tuple[str, str]:
    """The rule that a row breaks, and what it has instead."""
    not_finite = row[~np.isfinite(row)]
    if len(not_finite):
        return "finite", str(not_finite[0])
    if metric == COSINE and not row.any():
        return "without zero vectors, which have no cosine", "a zero vector"
    return f"of norms between {SMALLEST_NORM} and {_LARGEST_NORM}", f"a largest coordinate of {np.abs(row).max()}"
