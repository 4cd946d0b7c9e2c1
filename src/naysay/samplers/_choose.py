"""Choosing slots by score, in NumPy or torch alike: the highest, or at random in proportion."""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.arrays import is_torch, need_torch, to_numpy, to_torch
from naysay.checks import public
from naysay.kernels.threads import in_rows
from naysay.kernels.top import highest
from naysay.types import Array

# How many places a list kept in order may have; a partial sort is quicker beyond.
SHORT = 32


def gather(values: Array, order: Array) -> Array:
    """values[row, order[row]] for every row: (B, K, ...) from (B, n, ...) and (B, K)."""
    beyond = (1,) * (values.ndim - 2)
    if not is_torch(values):
        return np.take_along_axis(values, order.reshape(*order.shape, *beyond), axis=1)
    return values.gather(1, order.reshape(*order.shape, *beyond).expand(*order.shape, *values.shape[2:]))


def top(scores: Array, width: int) -> Array:
    """(B, width) slots of the highest scores, highest first; -inf comes last. width is at most n.

    On a processor NumPy chooses, whatever the array type, so that both answer alike, and of equal scores the earlier
    slot comes first. A device has its own way with equal scores.
    """
    if not is_torch(scores):
        return _highest(scores, width)
    if scores.device.type == "cpu":
        return to_torch(_highest(to_numpy(scores), width))
    return scores.topk(width, dim=1).indices


def _highest(scores: Any, width: int) -> Any:
    """`top` of a NumPy array: a list kept in order if it is short; else a partial sort, whole where rows are tied."""
    if not 0 < width < scores.shape[1]:
        return np.argsort(-scores, axis=1, kind="stable")[:, :width]
    if width <= SHORT:
        held = np.ascontiguousarray(scores, np.result_type(scores.dtype, np.float32))  # a loop knows no half precision
        order = np.empty((len(scores), width), np.int64)
        in_rows(highest, len(scores), scores.size, held, order)
        return order
    part = np.argpartition(-scores, width, axis=1)
    next_best = np.take_along_axis(scores, part[:, width : width + 1], axis=1)[:, 0]
    part = np.sort(part[:, :width], axis=1)
    chosen = np.take_along_axis(scores, part, axis=1)
    found = np.take_along_axis(part, np.argsort(-chosen, axis=1, kind="stable"), axis=1)
    tied = chosen.min(axis=1) == next_best
    if tied.any():
        found[tied] = np.argsort(-scores[tied], axis=1, kind="stable")[:, :width]
    return found


@public
def gumbel(shape: tuple[int, ...], key: np.uint64, like: Array) -> Array:
    """Gumbel noise: the highest of logits + noise is a draw from their softmax, the k highest k draws without repeats.

    On a processor it is NumPy's, whatever the array type, so that both draw the same; a device has its own generator.
    It is -log of an exponential number, which takes one logarithm instead of two.
    Vieira. Gumbel-max Trick and Weighted Reservoir Sampling. 2014; Kool et al. Stochastic Beams. ICML 2019.
    """
    if is_torch(like) and like.device.type != "cpu":
        torch = need_torch()
        generator = torch.Generator(device=like.device).manual_seed(int(key) & ((1 << 63) - 1))
        uniform = torch.rand(shape, generator=generator, device=like.device, dtype=like.dtype)
        return -(-uniform.clamp_min(torch.finfo(like.dtype).tiny).log()).log()
    noise: Any = np.random.Generator(np.random.Philox(key=int(key))).standard_exponential(size=shape)
    np.maximum(noise, np.finfo(np.float64).tiny, out=noise)  # 0 has no logarithm
    np.negative(np.log(noise, out=noise), out=noise)
    return to_torch(noise).to(like.dtype) if is_torch(like) else noise.astype(like.dtype, copy=False)
