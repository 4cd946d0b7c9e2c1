"""Error bounds of fast products: the certificate that an exact search missed nothing.

A vector x is written x = s (x^ + e) with a scale s, a code x^ on a coarse grid and a rounding error e. For a
query q and a corpus row c, with s and t their scales,

    q.c = s t (q^.c^ + q^.e_c + e_q.(c / t)),   so   |q.c - s t q^.c^| <= s |q^| t |e_c| + s |e_q| |c|

by Cauchy and Schwarz. The product itself is exact for int8 (32-bit sums of whole numbers). In floating point it is off
by at most P |q^| |c^|, for any order of summation, fused or not, with P = d u / (1 - d u):

    float32    u = 2^-24
    bfloat16   u = 2^-22, for units that round odd or twice, and the result rounded to bfloat16 once more, 2^-9

A score is the float64 sum rounded to float32; that, the float64 sums, and the float32 arithmetic of the bound itself
are within SLACK |q| |c|, SLACK = 2^-18 (each is a few times 2^-24 at most). Numbers below the range of float32 get a
slack of their own. L2 ranks by 2 q.c - |c|^2 = |q|^2 - distance^2, with the bound doubled and SLACK (|q|^2 + |c|^2) on
top.

Bounds are scaled so that float32 holds them whatever the norms are: cosine by both norms, the dot product by the
query's norm and the largest of the corpus, L2 by the largest of all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.kernels.dots import DOT, L2
from naysay.search._engines import Engine

SLACK = 2.0**-18
_UP = 1 + 2.0**-20  # a float64 number times this, rounded to float32, is not below it
_UNDERFLOW, _DENORMAL = 2.0**-100, 2.0**-147  # of float32 arithmetic in our units; of a score rounded to float32
_HUGE = 1e30
Sides = tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Rounded:
    """Rows on an engine's grid.

    Args:
        codes: (n, d), what the engine multiplies.
        scales: (n,) s.
        sizes: (n,) |x| / s.
        errors: (n,) |e|.
    """

    codes: NDArray[Any]
    scales: NDArray[np.float64]
    sizes: NDArray[np.float64]
    errors: NDArray[np.float64]

    @classmethod
    def empty(cls, engine: Engine, rows: int, width: int) -> Rounded:
        """Return buffers for rows. A width of 1 becomes 2, with zeros: torch's int8 product is wrong for one column."""
        numbers = (np.empty(rows), np.empty(rows), np.empty(rows))
        return cls(np.zeros((rows, max(2, width)), engine.codes), *numbers)

    def part(self, start: int, stop: int) -> Rounded:
        """A view of some of the rows."""
        part = slice(start, stop)
        return Rounded(self.codes[part], self.scales[part], self.sizes[part], self.errors[part])


@final
@dataclass(frozen=True, slots=True)
class Units:
    """The scale of bounds.

    Args:
        metric: DOT, COSINE or L2.
        corpus: The largest norm of a corpus row, for DOT.
        both: The largest norm of all, for L2.
        raw: Whether bounds are plain scores, because nothing is rounded.
    """

    metric: int
    corpus: float
    both: float
    raw: bool = False

    def of_scores(self, scores: NDArray[np.float32], norms: NDArray[np.float64]) -> NDArray[np.float32]:
        """Scores (n, m) of queries with these norms (n, 1), in the scale of the bounds."""
        if self.raw:
            return scores
        exact = scores.astype(np.float64)
        if self.metric == DOT:
            exact /= np.where(norms > 0, norms, 1.0) * self.corpus
        elif self.metric == L2:
            exact = (norms / self.both) ** 2 - (exact / self.both) ** 2
        return exact.astype(np.float32)


def cap_sides(units: Units, caps: NDArray[np.float32], norms: NDArray[np.float64]) -> NDArray[np.float32]:
    """(n, 2) bounds certainly not above a cap (n,) of scores, and certainly above it, in the scale of the bounds.

    Both differ from it by 2^-21 of it, more than the conversion rounds. Without a cap both are infinite.
    """
    exact = units.of_scores(caps[:, None], norms[:, None]).astype(np.float64)
    if units.metric == L2 and not units.raw:
        exact[caps >= 0] = np.inf  # minus a distance is never above it; its square would lose the sign
    with np.errstate(invalid="ignore"):
        apart = np.where(np.isfinite(exact), 2.0**-21 * np.abs(exact) + 1e-40, 0.0)
    return np.concatenate([exact - apart, exact + apart], axis=1).astype(np.float32)


def row_sides(engine: Engine, units: Units, rounded: Rounded) -> Sides:
    """The terms of the bounds that depend on the query: scale, factor of |c|, factor of c's error, slack.

    upper = product a scale + b size + c error + offset + slack, with (a, b, c, slack) from here and the rest from
    `column_sides`.
    """
    if not engine.rounds:
        return _plain(len(rounded.scales))
    norms = rounded.sizes * rounded.scales
    units_of_rows = np.where(norms > 0, norms, 1.0)
    slack = np.full(len(norms), _UNDERFLOW)
    if units.metric == DOT:
        with np.errstate(over="ignore", divide="ignore"):
            slack += _DENORMAL / (units_of_rows * units.corpus)
    elif units.metric == L2:
        units_of_rows = np.full(len(norms), units.both / 2)
        slack += SLACK * (norms / units.both) ** 2 + _DENORMAL / units.both
    scales = rounded.scales / units_of_rows
    near = scales * (rounded.sizes + rounded.errors)
    lost = scales * rounded.errors + SLACK * norms / units_of_rows
    return scales.astype(np.float32), _up(lost), _up(near), _up(np.minimum(slack, _HUGE))


def column_sides(engine: Engine, units: Units, rounded: Rounded) -> Sides:
    """The terms of the bounds that depend on the corpus row: scale, size, error and offset."""
    if not engine.rounds:
        return _plain(len(rounded.scales))
    sizes, errors = rounded.sizes, rounded.errors
    norms = sizes * rounded.scales
    unit: Any = np.where(norms > 0, norms, 1.0)
    if units.metric == DOT:
        unit = units.corpus
    elif units.metric == L2:
        unit = units.both
    scales = rounded.scales / unit
    lost = scales * (errors + (product_error(engine, rounded.codes.shape[1]) + SLACK) * (sizes + errors))
    offsets = -(1 - SLACK) * (norms / unit) ** 2 if units.metric == L2 else np.zeros(len(norms))
    return scales.astype(np.float32), _up(norms / unit), _up(lost), offsets.astype(np.float32)


def _plain(count: int) -> Sides:
    """The sides of products that are the scores themselves: an upper bound is the product."""
    nothing = np.zeros(count, np.float32)
    return np.ones(count, np.float32), nothing, nothing, nothing


def product_error(engine: Engine, width: int) -> float:
    """P: the error of a product of codes, in units of |q^| |c^|."""
    summed = width * engine.sum_error
    return (summed / (1 - summed) if summed < 1 else np.inf) + engine.result_error


def _up(values: NDArray[np.float64]) -> NDArray[np.float32]:
    return (values * _UP).astype(np.float32)
