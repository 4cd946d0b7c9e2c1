"""The products that a search can be fast with. Whichever is chosen, the answer is the same bytes.

    int8       8-bit whole numbers by torch; exact sums, the widest grid: the most pairs stay open, and each is cheap
    bfloat16   8 significant bits by torch
    float32    NumPy's product
    float64    no product: the exact score of every pair
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import need_torch
from naysay.checks import check_one_of, refuse
from naysay.kernels import rounding

NAMES = ("auto", "int8", "bfloat16", "float32", "float64")
_SMALL = 1 << 27  # products of numbers up to which all pairs are scored exactly
_WIDEST_INT8 = (2**31 - 1) // 127**2  # coordinates whose products a 32-bit sum holds
_WIDEST_FLOAT = 1 << 18
_COARSE = 1 / 40  # of a vector's norm: what int8 may take away before bfloat16 is the better grid
Product = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Engine:
    """One kind of product.

    name       as users write it
    codes      the dtype of rounded rows; bfloat16 is kept as uint16
    answer     the relative rounding of a product after it was summed
    roundoff   u, the relative rounding of each step of a sum
    bytes      per product of a block, all buffers counted
    round      the kernel that rounds rows, None where nothing is rounded
    """

    name: str
    codes: Any
    roundoff: float
    answer: float
    bytes: int
    round: Any

    @property
    def rounds(self) -> bool:
        """Whether its products are anything but the exact scores."""
        return self.round is not None


_ENGINES = {
    "int8": Engine("int8", np.int8, 0.0, 0.0, 4, rounding.to_int8),
    "bfloat16": Engine("bfloat16", np.uint16, 2.0**-22, 2.0**-9 * (1 + 2.0**-7), 6, rounding.to_bfloat16),
    "float32": Engine("float32", np.float32, 2.0**-24, 0.0, 4, rounding.to_float32),
    "float64": Engine("float64", np.float32, 0.0, 0.0, 4, None),
}


def choose(owner: str, name: str, rows: int, corpus: int, width: int, sample: NDArray[Any]) -> Engine:
    """The engine of that name, or by the rule of "auto".

    auto    float64 where there are at most 2^27 products of numbers; else int8 where torch and the processor have it
            (VNNI or AMX) and it takes at most 1/40 of a sample's norms away; else bfloat16 where they have it; else
            float32
    """
    check_one_of(owner, "engine", name, NAMES)
    if name == "auto":
        return _ENGINES[_automatic(rows, corpus, width, sample)]
    widest = _WIDEST_INT8 if name == "int8" else _WIDEST_FLOAT
    if width > widest and name != "float64":
        refuse(owner, "engine", f"'float64' for vectors wider than {widest}", repr(name))
    if name in ("int8", "bfloat16"):
        torch = need_torch(f"{owner} with engine={name!r}")
        if name == "int8" and not _int8_is_exact(torch):
            refuse(owner, "engine", "one that this torch multiplies exactly", "'int8'", "Leave it at 'auto'.")
    return _ENGINES[name]


def _automatic(rows: int, corpus: int, width: int, sample: NDArray[Any]) -> str:
    if rows * corpus * width <= _SMALL or width > _WIDEST_INT8:
        return "float64"
    if importlib.util.find_spec("torch") is None:
        return "float32"
    torch = need_torch("search")
    has = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    vnni = any(has.get(name) for name in ("avx512_vnni", "avx_vnni", "amx_int8"))
    if vnni and _lost_by_int8(sample) <= _COARSE and _int8_is_exact(torch):
        return "int8"
    half = any(has.get(name) for name in ("avx512_bf16", "amx_bf16"))
    return "bfloat16" if half else "float32"


def _lost_by_int8(sample: NDArray[Any]) -> float:
    """The mean share of a row's norm that rounding to int8 takes away."""
    scales, sizes, errors = (np.empty(len(sample)) for _ in range(3))
    rounding.to_int8(0, len(sample), sample, np.empty(sample.shape, np.int8), scales, sizes, errors)
    return float(np.mean(errors / np.maximum(sizes, 1e-300)))


def _int8_is_exact(torch: Any) -> bool:
    """Whether torch has the product and does not saturate: a processor without VNNI may add in 16 bits."""
    if not hasattr(torch, "_int_mm"):
        return False
    codes = np.where(np.arange(40 * 96).reshape(40, 96) % 7 < 5, 127, -127).astype(np.int8)
    codes[:8] = 127
    given = torch.from_numpy(codes)
    try:
        found = torch._int_mm(given, given.T).numpy()
    except RuntimeError:
        return False
    return bool((found == codes.astype(np.int64) @ codes.astype(np.int64).T).all())


def product(engine: Engine, rows: int, columns: int) -> Product:
    """The function (codes of queries, codes of corpus rows) -> products, with buffers of its own that it uses again.

    One for each thread: an answer is valid until the next call.
    """
    size = rows * columns
    if engine.name == "float32":
        numbers = np.empty(size, np.float32)

        def multiply(queries: NDArray[Any], corpus: NDArray[Any]) -> NDArray[Any]:
            out = numbers[: len(queries) * len(corpus)].reshape(len(queries), len(corpus))
            return np.matmul(queries, corpus.T, out=out)

        return multiply
    torch = need_torch("search")
    if engine.name == "int8":
        whole = torch.empty(size, dtype=torch.int32)

        def multiply_int8(queries: NDArray[Any], corpus: NDArray[Any]) -> NDArray[Any]:
            out = whole[: len(queries) * len(corpus)].view(len(queries), len(corpus))
            torch._int_mm(torch.from_numpy(queries), torch.from_numpy(corpus).T, out=out)
            return np.asarray(out.numpy())

        return multiply_int8
    half, single = torch.empty(size, dtype=torch.bfloat16), torch.empty(size, dtype=torch.float32)

    def multiply_bfloat16(queries: NDArray[Any], corpus: NDArray[Any]) -> NDArray[Any]:
        shape = (len(queries), len(corpus))
        out, wide = (buffer[: shape[0] * shape[1]].view(shape) for buffer in (half, single))
        given = [torch.from_numpy(codes.view(np.int16)).view(torch.bfloat16) for codes in (queries, corpus)]
        torch.mm(given[0], given[1].T, out=out)
        return np.asarray(wide.copy_(out).numpy())

    return multiply_bfloat16
