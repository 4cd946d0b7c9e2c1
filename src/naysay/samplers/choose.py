"""Choosing slots by score, in NumPy or torch alike: the highest, or at random in proportion."""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.arrays import is_torch, need_torch, to_torch
from naysay.types import Array


def gather(values: Array, order: Array) -> Array:
    """values[row, order[row]] for every row: (B, K, ...) from (B, n, ...) and (B, K)."""
    beyond = (1,) * (values.ndim - 2)
    if not is_torch(values):
        return np.take_along_axis(values, order.reshape(*order.shape, *beyond), axis=1)
    return values.gather(1, order.reshape(*order.shape, *beyond).expand(*order.shape, *values.shape[2:]))


def top(scores: Array, width: int) -> Array:
    """(B, width) slots of the highest scores, highest first; -inf comes last. width is at most n."""
    if is_torch(scores):
        return scores.topk(width, dim=1).indices
    if width < scores.shape[1]:
        part = np.argpartition(-scores, width - 1, axis=1)[:, :width] if width else np.zeros((len(scores), 0), np.int64)
    else:
        part = np.broadcast_to(np.arange(width), (len(scores), width))
    order = np.argsort(-np.take_along_axis(scores, part, axis=1), axis=1, kind="stable")
    return np.take_along_axis(part, order, axis=1)


def gumbel(shape: tuple[int, ...], key: np.uint64, like: Array) -> Array:
    """Gumbel noise: the highest of logits + noise is a draw from their softmax, the k highest k draws without repeats.

    On a processor it is NumPy's, whatever the array type, so that both draw the same; a device has its own generator.
    Vieira. Gumbel-max Trick and Weighted Reservoir Sampling. 2014; Kool et al. Stochastic Beams. ICML 2019.
    """
    if is_torch(like) and like.device.type != "cpu":
        torch = need_torch("gumbel")
        generator = torch.Generator(device=like.device).manual_seed(int(key) & ((1 << 63) - 1))
        uniform = torch.rand(shape, generator=generator, device=like.device, dtype=like.dtype)
        return -(-uniform.clamp_min(torch.finfo(like.dtype).tiny).log()).log()
    noise: Any = np.random.Generator(np.random.Philox(key=int(key))).gumbel(size=shape)
    return to_torch(noise).to(like.dtype) if is_torch(like) else noise.astype(like.dtype, copy=False)
