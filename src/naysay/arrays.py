"""Conversion between NumPy and torch, only here. torch is imported only if a user passes tensors."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from naysay.errors import MissingExtraError, how_to_install

Floats = NDArray[np.float64]
Part = TypeVar("Part")


def is_torch(values: object) -> bool:
    """Whether `values` is a torch tensor. If torch was never imported, it is not."""
    module = sys.modules.get("torch")
    return module is not None and isinstance(values, module.Tensor)


def module_of(values: object) -> Any:
    """The torch module for a tensor, NumPy for anything else: for functions that both have by one name."""
    return need_torch() if is_torch(values) else np


def without_gradients(values: object) -> AbstractContextManager[Any]:
    """torch.no_grad() where `values` is a tensor; else nothing."""
    return need_torch().no_grad() if is_torch(values) else nullcontext()


def to_numpy(values: Any) -> Any:
    """A tensor as a NumPy array (shared memory where it can be); anything else as it is."""
    if not is_torch(values):
        return values
    tensor = values.detach().cpu()
    if str(tensor.dtype) == "torch.bfloat16":  # NumPy has no bfloat16
        tensor = tensor.float()
    return tensor.numpy()


def to_torch(values: Any, device: Any = None) -> Any:
    """A NumPy array as a tensor on `device`; read-only, broadcast and reversed arrays are copied first.

    Apple's mps has no float64: there it becomes float32.
    """
    torch = need_torch()
    if is_torch(values):
        return values.to(device, dtype_for(device, values.dtype)) if device is not None else values
    array = np.asarray(values)
    if not array.flags.writeable or min(array.strides, default=1) <= 0:
        array = array.copy()
    tensor = torch.from_numpy(array)
    return tensor.to(device, dtype_for(device, tensor.dtype)) if device is not None else tensor


def of_type(values: Any, like: Any) -> Any:
    """A NumPy array in the array type, number type and on the device of `like`."""
    return to_torch(values, like.device).to(like.dtype) if is_torch(like) else values.astype(like.dtype, copy=False)


def dtype_for(device: Any, dtype: Any) -> Any:
    """The torch dtype in which `device` holds values of `dtype`: itself, but float32 for float64 on mps."""
    if str(device).partition(":")[0] == "mps" and str(dtype) == "torch.float64":
        return need_torch().float32
    return dtype


def need_torch(extra: str = "torch") -> Any:
    """The torch module. Raises MissingExtraError with the pip command of an extra if it is not installed."""
    try:
        import torch
    except ImportError as error:
        message = f"torch is not installed. {how_to_install(extra)}"
        raise MissingExtraError(message) from error
    return torch


class StateArray(np.ndarray[Any, Any]):
    """A NumPy array of a state, which torch.save writes as a tensor: torch.load(weights_only=True) takes no other."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        """How to pickle it: as a tensor once torch is loaded, else as a plain array."""
        plain = np.asarray(self)
        return (to_torch(plain) if "torch" in sys.modules else plain).__reduce_ex__(protocol)


def for_checkpoints(state: Callable[[Part], dict[str, Any]]) -> Callable[[Part], dict[str, Any]]:
    """Decorate a method `state`: what it returns can be saved by torch.save and loaded with weights_only=True."""

    @wraps(state)
    def call(part: Part) -> dict[str, Any]:
        return {name: _for_checkpoints(value) for name, value in state(part).items()}

    return call


def _for_checkpoints(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    return value.view(StateArray) if isinstance(value, np.ndarray) else value


@contextmanager
def torch_in_one_thread(extra: str = "torch") -> Iterator[None]:
    """Run torch in one thread, and in as many as before afterwards: sums of several threads depend on their timing."""
    torch = need_torch(extra)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
