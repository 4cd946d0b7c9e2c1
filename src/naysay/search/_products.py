"""Fast products of rounded vectors, and their error bounds: the certificate that an exact search missed nothing.

int8       8-bit integers by torch: exact sums and the coarsest grid, so the most pairs stay open
float32    torch's product, or NumPy's where torch is not loaded

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
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import need_torch
from naysay.checks import raise_invalid
from naysay.kernels.dots import DOT, L2

NAMES = ("auto", "int8", "float32", "float64")
SMALL = 1 << 27  # products of numbers up to which all pairs are scored exactly
_QUICK = 1 << 35  # products that float32 makes in the time in which torch is loaded, about
_WIDEST_INT8 = (2**31 - 1) // 127**2  # coordinates whose products a 32-bit sum holds
_WIDEST_FLOAT = 1 << 18
_COARSE = 0.5  # the widest bound, in standard deviations of the scores, for which a coarse engine is worthwhile
_NUMBERS_AT_ONCE = 1 << 16  # coordinates that are rounded at a time, 512 KB of float64
SLACK = 2.0**-18
_UP = 1 + 2.0**-20  # a float64 number times this, rounded to float32, is not below it
_UNDERFLOW, _DENORMAL = 2.0**-100, 2.0**-147  # of float32 arithmetic in our units; of a score rounded to float32
_HUGE = 1e30
_STEP, _LEAST = 8, 32  # a GPU multiplies 8-bit integers in steps of so many, and at least so many rows
Rows = NDArray[Any]
Product = Callable[[Any, Any], NDArray[Any]]
Terms = tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Engine:
    """One kind of product."""

    name: str
    codes: Any  # the dtype of rounded rows
    sum_error: float = 0.0  # u, the relative rounding of each step of a sum
    result_error: float = 0.0  # the relative rounding of a product after it was summed


PLAIN = Engine("float64", np.float64)  # no products: every pair is scored
_INT8 = Engine("int8", np.int8)
_FLOAT32 = Engine("float32", np.float32, sum_error=2.0**-24)
# On a device a sum is off by more in each step, in an order of its own, and products of float32 may have inputs of 10
# bits (TF32), as torch was told.
_DEVICE_FLOAT32 = replace(_FLOAT32, sum_error=2.0**-21, result_error=2.0**-9 * (1 + 2.0**-7))


def choose(name: str, total_work: int, width: int, sample: Callable[[], Rows], device: Any = None) -> Engine:
    """Return the engine of that name, or by the rule of "auto" for searches that are not small.

    auto    float32 where all searches together have at most 2^35 products of numbers and torch is not loaded, which
            takes as long; else int8 if torch and the processor have it (VNNI, AMX) and its bound is at most half the
            standard deviation of the cosines within a sample of the corpus: vectors with one huge coordinate need a
            fine grid; else float32. On a device: int8 if its bound is small enough, else float32.
    """
    if device is not None:
        return _on_device(name, width, sample, device)
    if name == "auto":
        return _automatic(total_work, width, sample)
    if name == "float64":
        return PLAIN
    widest = _WIDEST_INT8 if name == "int8" else _WIDEST_FLOAT
    if width > widest:
        raise_invalid("engine", f"'float64' for vectors wider than {widest}", repr(name))
    if name == "int8" and not int8_is_exact(need_torch(), width):
        raise_invalid("engine", "one that this torch multiplies exactly", "'int8'", "Leave it at 'auto'.")
    return _INT8 if name == "int8" else _FLOAT32


def _automatic(total_work: int, width: int, sample: Callable[[], Rows]) -> Engine:
    if width > _WIDEST_INT8:
        return PLAIN
    if not torch_is_loaded() and (total_work <= _QUICK or importlib.util.find_spec("torch") is None):
        return _FLOAT32
    torch = need_torch()
    features = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    has_vnni = any(features.get(name) for name in ("avx512_vnni", "avx_vnni", "amx_int8"))
    return _INT8 if has_vnni and _int8_suits(sample()) and int8_is_exact(torch, width) else _FLOAT32


def _on_device(name: str, width: int, sample: Callable[[], Rows], device: Any) -> Engine:
    if name == "float64" or width > _WIDEST_FLOAT:
        raise_invalid("device", "left out for the engine 'float64', which runs on the processor", repr(str(device)))
    if name == "float32":
        return _DEVICE_FLOAT32
    exact = width <= _WIDEST_INT8 and int8_is_exact(need_torch(), width, device)
    if name == "int8" and not exact:
        raise_invalid("engine", f"one that torch multiplies exactly on {device}", "'int8'", "Leave it at 'auto'.")
    return _INT8 if name == "int8" or (exact and _int8_suits(sample())) else _DEVICE_FLOAT32


def _int8_suits(sample: Rows) -> bool:
    """Whether the mean error bound of two rows of norm 1 is small beside the standard deviation of the cosines."""
    if len(sample) < 2:
        return False
    norms = np.linalg.norm(sample.astype(np.float64), axis=1, keepdims=True)
    units = sample / np.maximum(norms, 1e-300)
    spread = float((units @ units.T)[~np.eye(len(units), dtype=bool)].std())
    rounded = Rounded.empty(_INT8, *sample.shape)
    round_rows(0, len(sample), sample, rounded)
    bound = 2 * float(np.mean(rounded.errors / np.maximum(rounded.sizes, 1e-300)))
    return bound <= _COARSE * spread


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


def round_rows(start: int, stop: int, rows: Rows, to: Rounded) -> None:
    """Round the rows from start to stop: to whole numbers up to 127, or to float32 at norm 1.

    Sizes and errors are float64 sums in any order: SLACK is far more than they round.
    """
    width = rows.shape[1]
    at_once = max(1, _NUMBERS_AT_ONCE // width)
    for first in range(start, stop, at_once):
        part = slice(first, min(first + at_once, stop))
        values = rows[part].astype(np.float64)
        largest = np.maximum(values.max(axis=1), -values.min(axis=1))
        if to.codes.dtype == np.int8:
            scales = largest / 127
        else:
            units = values / np.where(largest > 0, largest, 1.0)[:, None]  # whose squares do not underflow
            scales = largest * np.sqrt(np.einsum("ij,ij->i", units, units))
        scales = np.where(scales > 0, scales, 1.0)
        values *= (1 / scales)[:, None]
        codes = np.rint(values) if to.codes.dtype == np.int8 else values
        to.codes[part, :width] = codes
        to.scales[part] = scales
        to.sizes[part] = np.sqrt(np.einsum("ij,ij->i", values, values))
        values -= to.codes[part, :width]
        to.errors[part] = np.sqrt(np.einsum("ij,ij->i", values, values))


@final
@dataclass(frozen=True, slots=True)
class Units:
    """The scale of bounds."""

    metric: int
    corpus: float  # the largest norm of a corpus row, for DOT
    both: float  # the largest norm of all, for L2

    def of_scores(self, scores: NDArray[np.float32], norms: NDArray[np.float64]) -> NDArray[np.float32]:
        """Scores (n, m) of queries with these norms (n, 1), in the scale of the bounds."""
        exact = scores.astype(np.float64)
        if self.metric == DOT:
            exact /= np.where(norms > 0, norms, 1.0) * self.corpus
        elif self.metric == L2:
            exact = (norms / self.both) ** 2 - (exact / self.both) ** 2
        return exact.astype(np.float32)


def query_terms(units: Units, rounded: Rounded) -> Terms:
    """The terms of `kernels.bounds_scan` that depend on the query: scale, lost, size and slack."""
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
    sizes = scales * (rounded.sizes + rounded.errors)
    lost = scales * rounded.errors + SLACK * norms / units_of_rows
    return scales.astype(np.float32), _up(lost), _up(sizes), _up(np.minimum(slack, _HUGE))


def corpus_terms(engine: Engine, units: Units, rounded: Rounded) -> Terms:
    """The terms of `kernels.bounds_scan` that depend on the corpus row: scale, size, lost and offset."""
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


def _up(values: NDArray[np.float64]) -> NDArray[np.float32]:
    return (values * _UP).astype(np.float32)


# ---- products by torch or NumPy, on the processor or on another device ----------------------------------------------


def torch_is_loaded() -> bool:
    """Whether something has loaded torch, which takes a second."""
    return "torch" in sys.modules


def int8_is_exact(torch: Any, width: int, device: Any = None) -> bool:
    """Whether torch has the product and does not saturate: a processor without VNNI may add in 16 bits."""
    if not hasattr(torch, "_int_mm"):
        return False
    width = max(2, width)  # as in `Rounded`
    codes = np.where(np.arange(40 * width).reshape(40, width) % 7 < 5, 127, -127).astype(np.int8)
    codes[:8] = 127
    given = torch.from_numpy(codes)
    try:
        products = (torch._int_mm(given, given.T) if device is None else on_device(*[given.to(device)] * 2)).cpu()
    except RuntimeError:
        return False
    return bool((products.numpy() == codes.astype(np.int64) @ codes.astype(np.int64).T).all())


def moved(codes: NDArray[Any], device: Any) -> Any:
    """Codes as `product` takes them: themselves, or as a tensor on the device."""
    if device is None:
        return codes
    return need_torch().from_numpy(codes).to(device)


def on_device(queries: Any, corpus: Any) -> Any:
    """(n, m) the products of two tensors (n, d) and (m, d): int32 of 8-bit integers, float32 of float32."""
    torch = need_torch()
    if queries.dtype != torch.int8:
        return queries @ corpus.T
    (n, width), m = queries.shape, len(corpus)
    more, pad = (_STEP - width % _STEP) % _STEP, torch.nn.functional.pad
    if more or n < _LEAST:
        queries = pad(queries, (0, more, 0, max(0, _LEAST - n)))
    if more or m % _STEP:
        corpus = pad(corpus, (0, more, 0, (_STEP - m % _STEP) % _STEP))
    return torch._int_mm(queries, corpus.T)[:n, :m]


def product(name: str, rows: int, columns: int, device: Any = None) -> Product:
    """Return a function (query codes, corpus codes) -> products that reuses its buffers, for the engine of that name.

    Make one for each thread: a result is valid until the next call. On a device it takes what `moved` returns.
    """
    size = rows * columns
    if device is not None:
        return lambda queries, corpus: np.ascontiguousarray(on_device(queries, corpus).cpu().numpy())
    if name == "float32" and not torch_is_loaded():
        numbers = np.empty(size, np.float32)

        def multiply_plainly(queries: NDArray[Any], corpus: NDArray[Any]) -> NDArray[Any]:
            out = numbers[: len(queries) * len(corpus)].reshape(len(queries), len(corpus))
            return np.matmul(queries, corpus.T, out=out)

        return multiply_plainly
    torch = need_torch()
    function, kind = (torch._int_mm, torch.int32) if name == "int8" else (torch.mm, torch.float32)
    buffer = torch.empty(size, dtype=kind)

    def multiply(queries: NDArray[Any], corpus: NDArray[Any]) -> NDArray[Any]:
        shape = (len(queries), len(corpus))
        out = buffer[: shape[0] * shape[1]].view(shape)
        product = function(torch.from_numpy(queries), torch.from_numpy(corpus).T, out=out)
        return np.asarray(product.numpy())

    return multiply
