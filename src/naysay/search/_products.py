"""Fast products of rounded vectors, and their error bounds: the certificate that an exact search missed nothing.

int8       8-bit integers by torch: exact sums and the coarsest grid, so the most pairs stay unresolved
float32    torch's product, or NumPy's where torch is not loaded
float64    no product: the exact score of every pair

A vector x is written x = s (x^ + e) with a scale s, a code x^ on a coarse grid and a rounding error e. For a
query q and a corpus row c, with s and t their scales,

    q.c = s t (q^.c^ + q^.e_c + e_q.(c / t)),   so   |q.c - s t q^.c^| <= s |q^| t |e_c| + s |e_q| |c|

by Cauchy and Schwarz. The product itself is exact for int8 (32-bit sums of whole numbers). In floating point it is off
by at most P |q^| |c^|, for any order of summation, fused or not, with P = d u / (1 - d u) and u = 2^-24 for float32. On
a device, such as a GPU, in any of its modes, u = 2^-21 for units that align and cut off what they add, and each factor
may be cut to 10 bits after the first (TF32), 2^-9 of the product.

A score is the float64 sum rounded to float32; that, the float64 sums, and the float32 arithmetic of the bound itself
are within SLACK |q| |c|, SLACK = 2^-18 (each is a few times 2^-24 at most). Numbers below the range of float32 get a
slack of their own. L2 ranks by 2 q.c - |c|^2 = |q|^2 - distance^2, with the bound doubled and SLACK (|q|^2 + |c|^2) on
top.

Bounds are scaled so that float32 holds them whatever the norms are: cosine by both norms, the dot product by the
query's norm and the largest of the corpus, L2 by the largest of all.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import frozen
from naysay.arrays import need_torch
from naysay.checks import raise_invalid
from naysay.kernels import rounding
from naysay.kernels.dots import DOT, L2
from naysay.search._multiply import int8_is_exact, torch_is_loaded

NAMES = ("auto", "int8", "float32", "float64")
_SMALL = 1 << 27  # products of numbers up to which all pairs are scored exactly
_QUICK = 1 << 35  # products that float32 makes in the time in which torch is loaded, about
_WIDEST_INT8 = (2**31 - 1) // 127**2  # coordinates whose products a 32-bit sum holds
_WIDEST_FLOAT = 1 << 18
_COARSE = 0.5  # the widest bound, in standard deviations of the scores, for which a coarse engine is worthwhile
SLACK = 2.0**-18
_UP = 1 + 2.0**-20  # a float64 number times this, rounded to float32, is not below it
_UNDERFLOW, _DENORMAL = 2.0**-100, 2.0**-147  # of float32 arithmetic in our units; of a score rounded to float32
_HUGE = 1e30
Sides = tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Engine:
    """One kind of product."""

    name: str
    codes: Any  # the dtype of rounded rows
    sum_error: float  # u, the relative rounding of each step of a sum
    result_error: float  # the relative rounding of a product after it was summed
    bytes: int  # memory for each product of a block, all buffers included
    round: Any  # the kernel that rounds rows, None where nothing is rounded

    @property
    def rounds(self) -> bool:
        """Whether its products differ from the exact scores."""
        return self.round is not None


_ENGINES = {
    "int8": Engine("int8", np.int8, 0.0, 0.0, 4, rounding.to_int8),
    "float32": Engine("float32", np.float32, 2.0**-24, 0.0, 4, rounding.to_float32),
    "float64": Engine("float64", np.float32, 0.0, 0.0, 4, None),
}
# On a device a sum is off by more in each step, in an order of its own, and products of float32 may have inputs of 10
# bits (TF32), as torch was told.
_DEVICE_ENGINES = {
    "int8": _ENGINES["int8"],
    "float32": replace(_ENGINES["float32"], sum_error=2.0**-21, result_error=2.0**-9 * (1 + 2.0**-7)),
}


def choose(
    name: str, rows: int, corpus: int, width: int, sample: NDArray[Any], total: int = 0, device: Any = None
) -> Engine:
    """Return the engine of that name, or by the rule of "auto"; `total` rows are searched for, these among them.

    On a `device`, "auto" is int8 if its bound is small enough, whatever the size, else float32.

    auto    float64 where there are at most 2^27 products of numbers; float32 where there are at most 2^35 and torch is
            not loaded, which takes as long; else int8 if torch and the processor have it (VNNI, AMX) and its bound is
            at most half the standard deviation of the cosines within the sample: vectors with one huge coordinate
            need a fine grid; else float32
    """
    if device is not None:
        return _on_device(name, width, sample, device)
    if name == "auto":
        return _ENGINES[_automatic(rows, corpus, width, sample, max(rows, total))]
    widest = _WIDEST_INT8 if name == "int8" else _WIDEST_FLOAT
    if width > widest and name != "float64":
        raise_invalid("engine", f"'float64' for vectors wider than {widest}", repr(name))
    if name == "int8" and not int8_is_exact(need_torch(), width):
        raise_invalid("engine", "one that this torch multiplies exactly", "'int8'", "Leave it at 'auto'.")
    return _ENGINES[name]


def is_small(rows: int, corpus: int, width: int) -> bool:
    """Whether all pairs are scored exactly."""
    return rows * corpus * width <= _SMALL


def _automatic(rows: int, corpus: int, width: int, sample: NDArray[Any], total: int) -> str:
    if is_small(rows, corpus, width) or width > _WIDEST_INT8:
        return "float64"
    if not torch_is_loaded() and (total * corpus * width <= _QUICK or importlib.util.find_spec("torch") is None):
        return "float32"
    torch = need_torch()
    features = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    vnni = any(features.get(name) for name in ("avx512_vnni", "avx_vnni", "amx_int8"))
    spread = _COARSE * _spread(sample)
    fits = vnni and _bound(_ENGINES["int8"], sample) <= spread and int8_is_exact(torch, width)
    return "int8" if fits else "float32"


def _spread(sample: NDArray[Any]) -> float:
    """The standard deviation of the cosines between different rows."""
    norms = np.linalg.norm(sample.astype(np.float64), axis=1, keepdims=True)
    units = sample / np.maximum(norms, 1e-300)
    return float((units @ units.T)[~np.eye(len(units), dtype=bool)].std()) if len(units) > 1 else 0.0


def _bound(engine: Engine, sample: NDArray[Any]) -> float:
    """The mean error bound of an engine's product of two rows of norm 1."""
    scales, sizes, errors = (np.empty(len(sample)) for _ in range(3))
    codes = np.empty(sample.shape, engine.codes)
    engine.round(0, len(sample), frozen(sample), codes, scales, sizes, errors)
    return 2 * float(np.mean(errors / np.maximum(sizes, 1e-300))) + engine.result_error


def _on_device(name: str, width: int, sample: NDArray[Any], device: Any) -> Engine:
    if name == "float64" or width > _WIDEST_FLOAT:
        raise_invalid("device", "left out for the engine 'float64', which runs on the processor", repr(str(device)))
    exact = name in ("auto", "int8") and width <= _WIDEST_INT8 and int8_is_exact(need_torch(), width, device)
    if name == "int8" and not exact:
        raise_invalid("engine", f"one that torch multiplies exactly on {device}", "'int8'", "Leave it at 'auto'.")
    if name == "auto":
        fits = exact and _bound(_DEVICE_ENGINES["int8"], sample) <= _COARSE * _spread(sample)
        name = "int8" if fits else "float32"
    return _DEVICE_ENGINES[name]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Rounded:
    """Rows on an engine's grid."""

    codes: NDArray[Any]  # (n, d), what the engine multiplies
    scales: NDArray[np.float64]  # (n,) s
    sizes: NDArray[np.float64]  # (n,) |x| / s
    errors: NDArray[np.float64]  # (n,) |e|

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
    """The scale of bounds."""

    metric: int
    corpus: float  # the largest norm of a corpus row, for DOT
    both: float  # the largest norm of all, for L2
    raw: bool = False  # whether bounds are plain scores, because nothing is rounded

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
    summed = rounded.codes.shape[1] * engine.sum_error
    product_error = (summed / (1 - summed) if summed < 1 else np.inf) + engine.result_error  # P, of a product of codes
    lost = scales * (errors + (product_error + SLACK) * (sizes + errors))
    offsets = -(1 - SLACK) * (norms / unit) ** 2 if units.metric == L2 else np.zeros(len(norms))
    return scales.astype(np.float32), _up(norms / unit), _up(lost), offsets.astype(np.float32)


def _plain(count: int) -> Sides:
    """The sides of products that are the scores themselves: an upper bound is the product."""
    nothing = np.zeros(count, np.float32)
    return np.ones(count, np.float32), nothing, nothing, nothing


def _up(values: NDArray[np.float64]) -> NDArray[np.float32]:
    return (values * _UP).astype(np.float32)
