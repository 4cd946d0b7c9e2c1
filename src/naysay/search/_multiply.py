"""Products of rounded vectors by torch or NumPy, on the processor or on another device."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import need_torch

Product = Callable[[Any, Any], NDArray[Any]]
_STEP, _LEAST = 8, 32  # a GPU multiplies 8-bit integers in steps of so many, and at least so many rows


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
