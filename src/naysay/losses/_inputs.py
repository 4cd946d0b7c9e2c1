"""What losses accept: scores and vectors in torch; masks, weights, log_q and labels in torch or NumPy."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from naysay.arrays import dtype_for, is_torch, to_numpy, to_torch
from naysay.checks import as_array, check_number, first_bad, raise_invalid


def as_temperature(value: Any, like: Tensor) -> Any:
    """A positive number as it is; a tensor of one number, which may be learnt, on the device of the scores."""
    if not is_torch(value):
        check_number("temperature", value, above=0, finite=True)
        return value
    if value.numel() != 1 or not value.is_floating_point():
        raise_invalid("temperature", "one number", f"a tensor of {value.dtype} and shape {tuple(value.shape)}")
    number = float(value.detach())
    if not 0 < number < math.inf:
        raise_invalid("temperature", "a number above 0", f"{number:g}")
    return value.to(like).reshape(())


def as_scores(parameter: str, values: Any, shape: tuple[int | None, ...]) -> Tensor:
    """A floating tensor of the given shape (None for any length), refused otherwise; its values are not looked at."""
    if not is_torch(values):
        raise_invalid(
            parameter, "a torch tensor", f"{type(values).__name__}", "Pass a tensor: gradients flow through it."
        )
    if not values.is_floating_point():
        raise_invalid(parameter, "of a floating dtype", str(values.dtype))
    fits = values.ndim == len(shape) and all(want in (None, got) for want, got in zip(shape, values.shape, strict=True))
    if not fits:
        raise_invalid(parameter, f"of shape {_named(shape)}", f"shape {tuple(values.shape)}")
    tensor: Tensor = values
    return tensor


def check_alike(parameter: str, values: Tensor, other: Tensor, name: str) -> None:
    """Refuse a tensor of another dtype or device than its partner."""
    if values.dtype != other.dtype:
        raise_invalid(parameter, f"of the dtype of {name}, {other.dtype}", str(values.dtype))
    if values.device != other.device:
        raise_invalid(parameter, f"on the device of {name}, {other.device}", str(values.device))


def check_finite(parameter: str, values: Tensor, kept: Tensor | None = None, advice: str = "") -> None:
    """Refuse NaN and infinity, where `kept`."""
    if math.isfinite(float(values.detach().sum())):
        return  # one pass: NaN and infinity do not leave a sum finite
    bad = ~values.detach().isfinite()
    if kept is not None:
        bad &= kept
    if bad.any():
        raise_invalid(parameter, "finite", first_bad(to_numpy(values.float()), to_numpy(bad)), advice)


def as_mask(values: Any, shape: tuple[int, ...], device: Any, parameter: str = "mask") -> Tensor:
    """A boolean tensor of the shape, on the device; True keeps a slot."""
    tensor = _moved(parameter, values, device)
    if tensor.dtype != torch.bool:
        raise_invalid(parameter, "of dtype bool", str(tensor.dtype), "True keeps a slot; pass mask.bool().")
    return _shaped(parameter, tensor, shape)


def as_numbers(parameter: str, values: Any, shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Numbers of the shape, in the dtype that is computed in and on the device of `like`."""
    tensor = _moved(parameter, values, like.device)
    if tensor.dtype == torch.bool or tensor.is_complex():
        raise_invalid(parameter, "numbers", str(tensor.dtype))
    return _shaped(parameter, tensor.to(computing(like)), shape)


def as_weights(values: Any, shape: tuple[int, ...], like: Tensor, kept: Tensor | None = None) -> Tensor:
    """Numbers of at least 0 where `kept`, in the dtype and on the device of `like`."""
    tensor = as_numbers("weights", values, shape, like)
    bad = ~(tensor.isfinite() & (tensor >= 0))
    if kept is not None:
        bad &= kept
    if bad.any():
        raise_invalid("weights", "finite and at least 0", first_bad(to_numpy(tensor), to_numpy(bad)))
    return tensor


def as_log_q(
    values: Any,
    shape: tuple[int, ...],
    like: Tensor,
    kept: Tensor | None = None,
    parameter: str = "log_q",
) -> Tensor:
    """Log-probabilities where `kept`: finite, and at most 0, so that a probability or a wrong sign does not pass."""
    tensor = as_numbers(parameter, values, shape, like)
    bad = ~(tensor.isfinite() & (tensor <= 1e-6))
    if kept is not None:
        bad &= kept
    if bad.any():
        advice = "It is the logarithm of a probability."
        raise_invalid(parameter, "finite and at most 0", first_bad(to_numpy(tensor), to_numpy(bad)), advice)
    return tensor


def as_labels(parameter: str, values: Any, size: int, device: Any) -> Tensor:
    """(G, size) whole numbers from -1 up; (size,) is one granularity."""
    tensor = as_indices(parameter, values, device)
    if tensor.ndim not in (1, 2) or tensor.shape[-1] != size or tensor.shape[0] == 0 < size:
        raise_invalid(parameter, f"of shape ({size},) or (granularities, {size})", f"shape {tuple(tensor.shape)}")
    if (tensor < -1).any():
        raise_invalid(parameter, "at least -1", f"{int(tensor.min())}", "-1 is no label.")
    return tensor[None] if tensor.ndim == 1 else tensor


def as_indices(parameter: str, values: Any, device: Any) -> Tensor:
    """Whole numbers as an int64 tensor on the device."""
    tensor = _moved(parameter, values, device)
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
        if tensor.numel():
            raise_invalid(parameter, "whole numbers", str(tensor.dtype))
        return tensor.long()
    return tensor.long()


def computing(values: Tensor) -> torch.dtype:
    """The dtype to compute in: half precision is summed in float32."""
    return torch.float32 if values.dtype in (torch.bfloat16, torch.float16) else values.dtype


def _moved(parameter: str, values: Any, device: Any) -> Tensor:
    """Anything array-like as a tensor on the device of the scores."""
    if not is_torch(values):
        values = as_array(parameter, values)
        if values.dtype.kind not in "biuf":
            raise_invalid(parameter, "numbers", f"dtype {values.dtype}")
    tensor: Tensor = to_torch(values)
    if tensor.is_meta and torch.device(device).type != "meta":
        raise_invalid(parameter, f"a tensor that can be moved to {device}", "one on meta, which has no values")
    return tensor.to(device, dtype_for(device, tensor.dtype))


def _shaped(parameter: str, tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    if tuple(tensor.shape) != shape:
        raise_invalid(parameter, f"of shape {shape}", f"shape {tuple(tensor.shape)}")
    return tensor


def _named(shape: tuple[int | None, ...]) -> str:
    names = ", ".join("any" if size is None else str(size) for size in shape)
    return f"({names},)" if len(shape) == 1 else f"({names})"
