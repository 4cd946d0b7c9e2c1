"""The engines of an exact search: which matrix product it uses. The result is the same bytes with any of them.

int8       8-bit integers by torch: exact sums and the coarsest grid, so the most pairs stay unresolved
bfloat16   8 significant bits by torch
float32    torch's product, or NumPy's where torch is absent
float64    no product: the exact score of every pair
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import frozen
from naysay.arrays import need_torch
from naysay.checks import check_one_of, raise_invalid
from naysay.kernels import rounding

NAMES = ("auto", "int8", "bfloat16", "float32", "float64")
_SMALL = 1 << 27  # products of numbers up to which all pairs are scored exactly
_WIDEST_INT8 = (2**31 - 1) // 127**2  # coordinates whose products a 32-bit sum holds
_WIDEST_FLOAT = 1 << 18
_COARSE = 0.5  # the widest bound, in standard deviations of the scores, for which a coarse engine is worthwhile
Product = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Engine:
    """One kind of product.

    Args:
        name: Its name as an option.
        codes: The dtype of rounded rows; bfloat16 is stored as uint16.
        sum_error: u, the relative rounding of each step of a sum.
        result_error: The relative rounding of a product after it was summed.
        bytes: Memory for each product of a block, all buffers included.
        round: The kernel that rounds rows, None where nothing is rounded.
    """

    name: str
    codes: Any
    sum_error: float
    result_error: float
    bytes: int
    round: Any

    @property
    def rounds(self) -> bool:
        """Whether its products differ from the exact scores."""
        return self.round is not None


_ENGINES = {
    "int8": Engine("int8", np.int8, 0.0, 0.0, 4, rounding.to_int8),
    "bfloat16": Engine("bfloat16", np.uint16, 2.0**-22, 2.0**-9 * (1 + 2.0**-7), 6, rounding.to_bfloat16),
    "float32": Engine("float32", np.float32, 2.0**-24, 0.0, 4, rounding.to_float32),
    "float64": Engine("float64", np.float32, 0.0, 0.0, 4, None),
}


def choose(name: str, rows: int, corpus: int, width: int, sample: NDArray[Any]) -> Engine:
    """Return the engine of that name, or by the rule of "auto".

    auto    float64 where there are at most 2^27 products of numbers; else the first of int8 and bfloat16 that torch
            and the processor have (VNNI, AMX, AVX512-BF16) and whose bound is at most half the standard deviation of
            the cosines within the sample: vectors with one huge coordinate need a fine grid; else float32
    """
    check_one_of("engine", name, NAMES)
    if name == "auto":
        return _ENGINES[_automatic(rows, corpus, width, sample)]
    widest = _WIDEST_INT8 if name == "int8" else _WIDEST_FLOAT
    if width > widest and name != "float64":
        raise_invalid("engine", f"'float64' for vectors wider than {widest}", repr(name))
    if name in ("int8", "bfloat16"):
        torch = need_torch()
        if name == "int8" and not _int8_is_exact(torch, width):
            raise_invalid("engine", "one that this torch multiplies exactly", "'int8'", "Leave it at 'auto'.")
    return _ENGINES[name]


def _automatic(rows: int, corpus: int, width: int, sample: NDArray[Any]) -> str:
    if rows * corpus * width <= _SMALL or width > _WIDEST_INT8:
        return "float64"
    if not has_torch():
        return "float32"
    torch = need_torch()
    features = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    vnni = any(features.get(name) for name in ("avx512_vnni", "avx_vnni", "amx_int8"))
    spread = _COARSE * _spread(sample)
    if vnni and _bound(_ENGINES["int8"], sample) <= spread and _int8_is_exact(torch, width):
        return "int8"
    half = any(features.get(name) for name in ("avx512_bf16", "amx_bf16"))
    return "bfloat16" if half and _bound(_ENGINES["bfloat16"], sample) <= spread else "float32"


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


def _int8_is_exact(torch: Any, width: int) -> bool:
    """Whether torch has the product and does not saturate: a processor without VNNI may add in 16 bits."""
    if not hasattr(torch, "_int_mm"):
        return False
    width = max(2, width)  # as in `_bounds.Rounded`
    codes = np.where(np.arange(40 * width).reshape(40, width) % 7 < 5, 127, -127).astype(np.int8)
    codes[:8] = 127
    given = torch.from_numpy(codes)
    try:
        products = torch._int_mm(given, given.T).numpy()
    except RuntimeError:
        return False
    return bool((products == codes.astype(np.int64) @ codes.astype(np.int64).T).all())


def product(engine: Engine, rows: int, columns: int) -> Product:
    """Return a function (query codes, corpus codes) -> products that reuses its buffers.

    Make one for each thread: a result is valid until the next call.
    """
    size = rows * columns
    if engine.name == "float32" and not has_torch():
        numbers = np.empty(size, np.float32)

        def multiply_plainly(queries: NDArray[Any], corpus: NDArray[Any]) -> NDArray[Any]:
            out = numbers[: len(queries) * len(corpus)].reshape(len(queries), len(corpus))
            return np.matmul(queries, corpus.T, out=out)

        return multiply_plainly
    torch = need_torch()
    kind, view, given, function = {
        "int8": (torch.int32, np.int8, torch.int8, getattr(torch, "_int_mm", None)),
        "bfloat16": (torch.bfloat16, np.int16, torch.bfloat16, torch.mm),
        "float32": (torch.float32, np.float32, torch.float32, torch.mm),
    }[engine.name]
    buffer = torch.empty(size, dtype=kind)
    wide = torch.empty(size if engine.name == "bfloat16" else 0, dtype=torch.float32)

    def multiply(queries: NDArray[Any], corpus: NDArray[Any]) -> NDArray[Any]:
        shape = (len(queries), len(corpus))
        one, other = (torch.from_numpy(codes.view(view)).view(given) for codes in (queries, corpus))
        out = function(one, other.T, out=buffer[: shape[0] * shape[1]].view(shape))
        return np.asarray((wide[: out.numel()].view(shape).copy_(out) if len(wide) else out).numpy())

    return multiply


def has_torch() -> bool:
    """Whether torch is installed, without loading it."""
    return importlib.util.find_spec("torch") is not None
