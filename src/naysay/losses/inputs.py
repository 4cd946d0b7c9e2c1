"""What losses accept: scores and vectors in torch; masks, weights, log_q and labels in torch or NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from naysay.arrays import dtype_for, is_torch, to_numpy, to_torch
from naysay.checks import as_array, check_at_least, first_bad, refuse, shown


def check_number(owner: str, parameter: str, value: Any, *, above: float = 0.0, below: float = math.inf) -> None:
    """Refuse anything but a number in the open interval (above, below)."""
    if not is_number(value) or not above < value < below:
        rule = f"a number above {above:g}" if math.isinf(below) else f"a number between {above:g} and {below:g}"
        refuse(owner, parameter, rule, shown(value))


def check_share(owner: str, parameter: str, value: Any) -> None:
    """Refuse anything but a number in [0, 1)."""
    if not is_number(value) or not 0 <= value < 1:
        refuse(owner, parameter, "at least 0 and below 1", shown(value))


def check_setting(owner: str, parameter: str, value: Any, least: float) -> None:
    """Refuse anything but a finite number of at least `least`."""
    check_at_least(owner, parameter, value, least)
    if math.isinf(value):
        refuse(owner, parameter, "finite", shown(value))


def is_number(value: Any) -> bool:
    """Whether it is one number, of Python's or NumPy's; True and False are none."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def as_temperature(owner: str, value: Any, like: Tensor) -> Any:
    """A positive number as it is; a tensor of one number, which may be learnt, on the device of the scores."""
    if not is_torch(value):
        check_number(owner, "temperature", value)
        return value
    if value.numel() != 1 or not value.is_floating_point():
        refuse(owner, "temperature", "one number", f"a tensor of {value.dtype} and shape {tuple(value.shape)}")
    number = float(value.detach())
    if not 0 < number < math.inf:
        refuse(owner, "temperature", "a number above 0", f"{number:g}")
    return value.to(like).reshape(())


def as_scores(owner: str, parameter: str, values: Any, shape: tuple[int | None, ...]) -> Tensor:
    """A floating tensor of the given shape (None for any length), refused otherwise; its values are not looked at."""
    if not is_torch(values):
        refuse(
            owner, parameter, "a torch tensor", f"{type(values).__name__}", "Pass a tensor: gradients flow through it."
        )
    if not values.is_floating_point():
        refuse(owner, parameter, "of a floating dtype", str(values.dtype))
    fits = values.ndim == len(shape) and all(want in (None, got) for want, got in zip(shape, values.shape, strict=True))
    if not fits:
        refuse(owner, parameter, f"of shape {_named(shape)}", f"shape {tuple(values.shape)}")
    tensor: Tensor = values
    return tensor


def check_alike(owner: str, parameter: str, values: Tensor, other: Tensor, name: str) -> None:
    """Refuse a tensor of another dtype or device than its partner."""
    if values.dtype != other.dtype:
        refuse(owner, parameter, f"of the dtype of {name}, {other.dtype}", str(values.dtype))
    if values.device != other.device:
        refuse(owner, parameter, f"on the device of {name}, {other.device}", str(values.device))


def check_finite(owner: str, parameter: str, values: Tensor, kept: Tensor | None = None, advice: str = "") -> None:
    """Refuse NaN and infinity, where `kept`."""
    if math.isfinite(float(values.detach().sum())):
        return  # one pass: NaN and infinity do not leave a sum finite
    bad = ~values.detach().isfinite()
    if kept is not None:
        bad &= kept
    if bad.any():
        refuse(owner, parameter, "finite", first_bad(to_numpy(values.float()), to_numpy(bad)), advice)


def as_mask(owner: str, values: Any, shape: tuple[int, ...], device: Any, parameter: str = "mask") -> Tensor:
    """A boolean tensor of the shape, on the device; True keeps a slot."""
    tensor = _moved(owner, parameter, values, device)
    if tensor.dtype != torch.bool:
        refuse(owner, parameter, "of dtype bool", str(tensor.dtype), "True keeps a slot; pass mask.bool().")
    return _shaped(owner, parameter, tensor, shape)


def as_numbers(owner: str, parameter: str, values: Any, shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Numbers of the shape, in the dtype that is computed in and on the device of `like`."""
    tensor = _moved(owner, parameter, values, like.device)
    if tensor.dtype == torch.bool or tensor.is_complex():
        refuse(owner, parameter, "numbers", str(tensor.dtype))
    return _shaped(owner, parameter, tensor.to(computing(like)), shape)


def as_weights(owner: str, values: Any, shape: tuple[int, ...], like: Tensor, kept: Tensor | None = None) -> Tensor:
    """Numbers of at least 0 where `kept`, in the dtype and on the device of `like`."""
    tensor = as_numbers(owner, "weights", values, shape, like)
    bad = ~(tensor.isfinite() & (tensor >= 0))
    if kept is not None:
        bad &= kept
    if bad.any():
        refuse(owner, "weights", "finite and at least 0", first_bad(to_numpy(tensor), to_numpy(bad)))
    return tensor


def as_log_q(
    owner: str,
    values: Any,
    shape: tuple[int, ...],
    like: Tensor,
    kept: Tensor | None = None,
    parameter: str = "log_q",
) -> Tensor:
    """Log-probabilities where `kept`: finite, and at most 0, so that a probability or a wrong sign does not pass."""
    tensor = as_numbers(owner, parameter, values, shape, like)
    bad = ~(tensor.isfinite() & (tensor <= 1e-6))
    if kept is not None:
        bad &= kept
    if bad.any():
        advice = "It is the logarithm of a probability."
        refuse(owner, parameter, "finite and at most 0", first_bad(to_numpy(tensor), to_numpy(bad)), advice)
    return tensor


def as_labels(owner: str, parameter: str, values: Any, size: int, device: Any) -> Tensor:
    """(G, size) whole numbers from -1 up; (size,) is one granularity."""
    tensor = as_indices(owner, parameter, values, device)
    if tensor.ndim not in (1, 2) or tensor.shape[-1] != size or tensor.shape[0] == 0 < size:
        refuse(owner, parameter, f"of shape ({size},) or (granularities, {size})", f"shape {tuple(tensor.shape)}")
    if (tensor < -1).any():
        refuse(owner, parameter, "at least -1", f"{int(tensor.min())}", "-1 is no label.")
    return tensor[None] if tensor.ndim == 1 else tensor


def as_indices(owner: str, parameter: str, values: Any, device: Any) -> Tensor:
    """Whole numbers as an int64 tensor on the device."""
    tensor = _moved(owner, parameter, values, device)
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
        if tensor.numel():
            refuse(owner, parameter, "whole numbers", str(tensor.dtype))
        return tensor.long()
    return tensor.long()


def computing(values: Tensor) -> torch.dtype:
    """The dtype to compute in: half precision is summed in float32."""
    return torch.float32 if values.dtype in (torch.bfloat16, torch.float16) else values.dtype


def _moved(owner: str, parameter: str, values: Any, device: Any) -> Tensor:
    """Anything array-like as a tensor on the device of the scores."""
    if not is_torch(values):
        values = as_array(owner, parameter, values)
        if values.dtype.kind not in "biuf":
            refuse(owner, parameter, "numbers", f"dtype {values.dtype}")
    tensor: Tensor = to_torch(values)
    if tensor.is_meta and torch.device(device).type != "meta":
        refuse(owner, parameter, f"a tensor that can be moved to {device}", "one on meta, which has no values")
    return tensor.to(device, dtype_for(device, tensor.dtype))


def _shaped(owner: str, parameter: str, tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    if tuple(tensor.shape) != shape:
        refuse(owner, parameter, f"of shape {shape}", f"shape {tuple(tensor.shape)}")
    return tensor


def _named(shape: tuple[int | None, ...]) -> str:
    names = ", ".join("any" if size is None else str(size) for size in shape)
    return f"({names},)" if len(shape) == 1 else f"({names})"
