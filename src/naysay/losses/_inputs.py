"""Inputs of losses: scores and vectors in torch; masks, weights, log_q, partners and labels in torch or NumPy.

Types, shapes and devices are always checked, values only where `values_are_checked` says so.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from naysay.arrays import dtype_for, to_numpy, to_torch
from naysay.checks import as_array, check_number, first_bad, raise_invalid
from naysay.losses.check_values import values_are_checked

# ---- values ----------------------------------------------------------------------------------------------------------


def check_all(parameter: str, values: Tensor, good: Tensor, rule: str, advice: str = "") -> None:
    """Raise with the first value that is not good. Call it only where values are checked."""
    if not good.all():
        raise_invalid(parameter, rule, first_bad(to_numpy(values), to_numpy(~good)), advice)


def check_finite(parameter: str, values: Tensor, where: Tensor | None = None, advice: str = "") -> None:
    """Raise on NaN and infinity, where `where` is True (None: everywhere)."""
    if not values_are_checked(values):
        return
    values = values.detach()
    if values.sum().isfinite():
        return  # one pass: a finite sum has no NaN or infinity in it
    good = values.isfinite()
    check_all(parameter, values, good if where is None else good | ~where, "finite", advice)


# ---- scores and vectors ----------------------------------------------------------------------------------------------


def computing_dtype(values: Tensor) -> torch.dtype:
    """Return the dtype to compute in: float32 for half precision."""
    return torch.float32 if values.dtype in (torch.bfloat16, torch.float16) else values.dtype


def without_autocast(like: Tensor) -> AbstractContextManager[Any]:
    """Let products keep the dtype of the vectors: torch.autocast would round scores to 8 or 11 bits."""
    device = like.device.type
    return torch.autocast(device, enabled=False) if torch.amp.is_autocast_available(device) else nullcontext()


def as_scores(parameter: str, values: Any, shape: tuple[int | None, ...]) -> Tensor:
    """Return a floating tensor of the given shape (None for any length); its values are not checked."""
    if not isinstance(values, Tensor):
        advice = "Pass a tensor: gradients flow through it."
        raise_invalid(parameter, "a torch tensor", f"a {type(values).__name__}", advice)
    if not values.is_floating_point():
        raise_invalid(parameter, "of a floating dtype", str(values.dtype))
    fits = values.ndim == len(shape) and all(want in (None, got) for want, got in zip(shape, values.shape, strict=True))
    if not fits:
        names = ["any" if size is None else str(size) for size in shape]
        wanted = f"({names[0]},)" if len(names) == 1 else f"({', '.join(names)})"
        raise_invalid(parameter, f"of shape {wanted}", f"shape {tuple(values.shape)}")
    return values


def check_same_type(parameter: str, values: Tensor, other: Tensor, name: str) -> None:
    """Raise if a tensor has another dtype or device than `other`."""
    if values.dtype != other.dtype:
        raise_invalid(parameter, f"of the dtype of {name}, {other.dtype}", str(values.dtype))
    if values.device != other.device:
        raise_invalid(parameter, f"on the device of {name}, {other.device}", str(values.device))


def as_vectors(parameter: str, values: Any, like: Tensor | None = None, *, middle: bool = False) -> Tensor:
    """Return floating vectors (n, d), or (n, K, d) if `middle`, with d, dtype and device of `like`."""
    width = None if like is None else like.shape[-1]
    shape = (None if like is None else len(like), None, width) if middle else (None, width)
    vectors = as_scores(parameter, values, shape)
    if like is not None:
        check_same_type(parameter, vectors, like, "the anchors")
    check_finite(parameter, vectors)
    return vectors


def as_temperature(value: Any, like: Tensor) -> Any:
    """Return a positive number as it is; a tensor of one number, which may be learned, on the device of the scores."""
    if not isinstance(value, Tensor):
        check_number("temperature", value, above=0, finite=True)
        return value
    if value.numel() != 1 or not value.is_floating_point():
        raise_invalid("temperature", "one number", f"a tensor of {value.dtype} and shape {tuple(value.shape)}")
    if values_are_checked(value):
        check_number("temperature", float(value.detach()), above=0, finite=True)
    return value.to(like).reshape(())


# ---- options of slots and columns ------------------------------------------------------------------------------------


def as_mask(values: Any, shape: tuple[int, ...], device: Any, parameter: str = "mask") -> Tensor:
    """Return a boolean tensor of the shape, on the device."""
    tensor = _moved(parameter, values, device)
    if tensor.dtype != torch.bool:
        raise_invalid(parameter, "of dtype bool", str(tensor.dtype), f"Pass {parameter}.bool().")
    return _shaped(parameter, tensor, shape)


def as_numbers(parameter: str, values: Any, shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Return numbers of the shape, in the computing dtype and on the device of `like`."""
    tensor = _moved(parameter, values, like.device)
    if tensor.dtype == torch.bool or tensor.is_complex():
        raise_invalid(parameter, "numbers", str(tensor.dtype))
    return _shaped(parameter, tensor.to(computing_dtype(like)), shape)


def as_weights(
    values: Any, shape: tuple[int, ...], like: Tensor, where: Tensor | None = None, parameter: str = "weights"
) -> Tensor:
    """Return numbers of at least 0 where `where` is True (None: everywhere)."""
    tensor = as_numbers(parameter, values, shape, like)
    if values_are_checked(tensor):
        good = tensor.isfinite() & (tensor >= 0)
        check_all(parameter, tensor, good if where is None else good | ~where, "finite and at least 0")
    return tensor


def as_log_q(
    values: Any, shape: tuple[int, ...], like: Tensor, where: Tensor | None = None, parameter: str = "log_q"
) -> Tensor:
    """Return log-probabilities, finite and at most 0 where `where` is True; a probability or a wrong sign raises.

    `detectors.ignore` adds log(slots drawn / slots left) in the slots of a row that it leaves: so much more is valid.
    """
    tensor = as_numbers(parameter, values, shape, like)
    if values_are_checked(tensor):
        most: Any = 1e-6  # the log of a probability of 1 may be rounded
        if where is not None:
            most = most + (shape[-1] / where.sum(dim=-1, keepdim=True).clamp(min=1)).log()
        good = tensor.isfinite() & (tensor <= most)
        advice = "It is the logarithm of a probability."
        check_all(parameter, tensor, good if where is None else good | ~where, "finite and at most 0", advice)
    return tensor


# ---- indices and labels ----------------------------------------------------------------------------------------------


def as_indices(parameter: str, values: Any, device: Any) -> Tensor:
    """Return whole numbers as an int64 tensor on the device."""
    tensor = _moved(parameter, values, device)
    whole = not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool)
    if not whole and tensor.numel():  # an empty list becomes floats
        raise_invalid(parameter, "whole numbers", str(tensor.dtype))
    return tensor.long()


def as_partner(values: Any, rows: int, size: int, device: Any, *, own: bool) -> Tensor:
    """Return (rows,) the column of each row's positive; without values, column i for row i.

    With `own` column i is row i itself, which cannot be its own positive.
    """
    if values is None:
        if own:
            raise_invalid("partner", "given without keys", "None", "It is the row of each anchor's positive.")
        if size < rows:
            raise_invalid("keys", f"at least {rows}, one positive for each anchor", size, "Or pass partner.")
        return torch.arange(rows, device=device)
    partner = _shaped("partner", as_indices("partner", values, device), (rows,))
    if values_are_checked(partner):
        check_all("partner", partner, (partner >= 0) & (partner < size), f"between 0 and {size - 1}")
        if own:
            others = partner != torch.arange(rows, device=device)
            check_all("partner", partner, others, "another row than the row itself")
    return partner


def as_labels(parameter: str, values: Any, size: int, device: Any) -> Tensor:
    """Return labels (G, size), whole numbers from -1 up; (size,) is one granularity."""
    tensor = as_indices(parameter, values, device)
    if tensor.ndim not in (1, 2) or tensor.shape[-1] != size or tensor.shape[0] == 0 < size:
        raise_invalid(parameter, f"of shape ({size},) or (granularities, {size})", f"shape {tuple(tensor.shape)}")
    if values_are_checked(tensor):
        check_all(parameter, tensor, tensor >= -1, "at least -1", "-1 is no label.")
    return tensor[None] if tensor.ndim == 1 else tensor


def label_pair(labels: Any, key_labels: Any, rows: int, size: int, device: Any, *, own: bool) -> tuple[Tensor, Tensor]:
    """Return (G, rows) labels of the anchors and (G, size) of all columns.

    With `own` the first columns are the anchors; key_labels are of the others, and -1 if left out.
    """
    row_labels = as_labels("labels", labels, rows, device)
    further = size - rows if own else size
    if key_labels is None:
        if not own:
            raise_invalid("key_labels", "given with labels", "None")
        column_labels = torch.full((len(row_labels), further), -1, device=device)
    else:
        column_labels = as_labels("key_labels", key_labels, further, device)
    if len(column_labels) != len(row_labels):
        raise_invalid("key_labels", f"of {len(row_labels)} granularities, as labels are", len(column_labels))
    return row_labels, torch.cat([row_labels, column_labels], dim=1) if own else column_labels


def _moved(parameter: str, values: Any, device: Any) -> Tensor:
    """Return anything array-like as a tensor on the device of the scores."""
    if isinstance(values, Tensor):
        if values.is_meta and torch.device(device).type != "meta":
            raise_invalid(parameter, f"a tensor that can be moved to {device}", "one on meta, which has no values")
        return values.to(device, dtype_for(device, values.dtype))
    array = as_array(parameter, values)
    if array.dtype.kind not in "biuf":
        raise_invalid(parameter, "numbers", f"dtype {array.dtype}")
    tensor: Tensor = to_torch(array, device)
    return tensor


def _shaped(parameter: str, tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    if tuple(tensor.shape) != shape:
        raise_invalid(parameter, f"of shape {shape}", f"shape {tuple(tensor.shape)}")
    return tensor
