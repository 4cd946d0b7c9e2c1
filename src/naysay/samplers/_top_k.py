"""Choosing k of a row's candidates: the top k, k of the top m, k by softmax, or any k; in NumPy or torch.

A choice is a pair `(order, kept)`: (B, w) slots in the order of choice, and which of them are filled; those stand first
in their row. `take` turns a choice into negatives.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay._slots import EMPTY, PER_SLOT, gather, like_query, where
from naysay.arrays import is_torch, module_of, need_torch, of_type, to_numpy, to_torch
from naysay.kernels import top as kernels
from naysay.kernels.random import uniforms
from naysay.kernels.threads import in_rows
from naysay.pools._slots import EXHAUSTED, shortfall
from naysay.rng import key_from
from naysay.types import Array, Negatives, Query

Choice = tuple[Array, Array]
# Up to this k a list kept in order is the fastest way; beyond it a partial sort is.
SHORT = 32


def softened(values: Array, temperature: float, rng: np.random.Generator) -> Array:
    """Values whose top k are k draws without repeats from softmax(values / temperature); at 0 the values themselves."""
    if temperature == 0:
        return values
    noise = gumbel(tuple(values.shape), key_from(rng), values)
    if temperature == 1:
        noise += values
        return noise
    # Both forms give the same order, and each is finite where the other may not be.
    return values + temperature * noise if temperature < 1 else values * (1 / temperature) + noise


def gumbel(shape: tuple[int, ...], key: np.uint64, like: Array) -> Array:
    """Gumbel noise: the highest of logits + noise is a draw from their softmax, the top k are k draws without repeats.

    On a CPU it is the same for both array types, so that both draw the same; another device has its own generator.
    Vieira. Gumbel-max Trick and Weighted Reservoir Sampling. 2014; Kool et al. Stochastic Beams. ICML 2019.
    """
    if is_torch(like) and like.device.type != "cpu":
        tiny = need_torch().finfo(like.dtype).tiny
        return -(-uniform_on_device(shape, key, like).clamp_min(tiny).log()).log()
    noise: Any = np.empty(shape)
    in_rows(uniforms, len(noise), noise.size, key, noise)  # in a third of the time of NumPy's generators
    np.negative(np.log(noise, out=noise), out=noise)
    noise = of_type(np.log(noise, out=noise), like)
    return module_of(noise).negative(noise, out=noise)


def uniform_on_device(shape: tuple[int, ...], key: np.uint64, like: Array) -> Array:
    """Uniform numbers in [0, 1) by a generator of the device of `like`."""
    torch = need_torch()
    generator = torch.Generator(device=like.device).manual_seed(int(key) & ((1 << 63) - 1))
    return torch.rand(shape, generator=generator, device=like.device, dtype=like.dtype)


# ---- choices --------------------------------------------------------------------------------------------


def top(scores: Array, width: int) -> Array:
    """(B, width) slots of the highest scores, highest first; -inf comes last. width is at most n.

    On a CPU NumPy chooses for both array types, so that both give the same, and of equal scores the earlier slot
    comes first. On another device the order of equal scores is the device's.
    """
    if not is_torch(scores):
        return _top_numpy(scores, width)
    if scores.device.type == "cpu":
        return to_torch(_top_numpy(to_numpy(scores), width))
    return scores.topk(width, dim=1).indices


def _top_numpy(scores: Any, width: int) -> Any:
    """`top` of a NumPy array: a list kept in order if it is short; else a partial sort, whole where rows are tied."""
    if not 0 < width < scores.shape[1]:
        return np.argsort(-scores, axis=1, kind="stable")[:, :width]
    if width <= SHORT:
        wide = np.ascontiguousarray(scores, np.result_type(scores.dtype, np.float32))  # loops take no half precision
        order = np.empty((len(scores), width), np.int64)
        in_rows(kernels.highest, len(scores), scores.size, wide, order)
        return order
    part = np.argpartition(-scores, width, axis=1)
    next_best = np.take_along_axis(scores, part[:, width : width + 1], axis=1)[:, 0]
    part = np.sort(part[:, :width], axis=1)
    chosen = np.take_along_axis(scores, part, axis=1)
    order = np.take_along_axis(part, np.argsort(-chosen, axis=1, kind="stable"), axis=1)
    tied = chosen.min(axis=1) == next_best
    if tied.any():
        order[tied] = np.argsort(-scores[tied], axis=1, kind="stable")[:, :width]
    return order


def pick(values: Array, may: Array, width: int) -> Choice:
    """The `width` highest values, or all if there are fewer, among the slots that `may` be taken (B, n)."""
    order = top(where(may, values, -np.inf), min(width, values.shape[1]))
    return order, gather(may, order)


def pick_any(may: Array, width: int, key: np.uint64, like: Array) -> Choice:
    """The same uniformly at random, by noise in the number type of `like`."""
    return pick(gumbel(tuple(may.shape), key, like), may, width)


def one_after_other(first: Choice, then: Choice) -> Choice:
    """What is kept in `first`, followed by what is kept in `then`, row by row."""
    order, kept = (module_of(one).concatenate([one, other], 1) for one, other in zip(first, then, strict=True))
    if is_torch(kept):
        place = (~kept).char().sort(dim=1, stable=True).indices
    else:
        place = np.argsort(~kept, axis=1, kind="stable")
    return gather(order, place), gather(kept, place)


# ---- answers --------------------------------------------------------------------------------------------


def take(
    drawn: Negatives,
    order: Array,
    kept: Array,
    counts: NDArray[np.int64],
    width: int,
    on_short: str,
    scores: Array = None,
) -> Negatives:
    """The chosen slots of `drawn`, at most counts[b] in row b, as (B, width).

    log_q is None: a choice after the draw has no exact probability.
    """
    torch = need_torch() if is_torch(order) else None
    missing = width - order.shape[1]
    if missing > 0:  # fewer candidates than slots
        pad = (0, missing)
        if torch is not None:
            order, kept = (torch.nn.functional.pad(value, pad) for value in (order, kept))
        else:
            order, kept = (np.pad(value, ((0, 0), pad)) for value in (order, kept))
    order, kept = order[:, :width], kept[:, :width]
    wanted = np.arange(width) < counts[:, None]
    kept = kept & (wanted if torch is None else to_torch(wanted, order.device))
    select = module_of(order).where
    chosen: dict[str, Array] = {}
    for name, given in _beside_ids(drawn).items():
        values = gather(given, order)
        filled = kept.reshape(*kept.shape, *(1,) * (values.ndim - 2))
        chosen[name] = select(filled, values, EMPTY.get(name, 0))
    ids = select(kept, gather(drawn.ids, order), -1)
    taken = None if scores is None else select(kept, gather(scores, order), 0.0)
    dropped = shortfall(on_short, to_numpy(ids), counts)
    return replace(drawn, ids=ids, scores=taken, log_q=None, dropped=dropped, **chosen)


def take_kept(
    drawn: Negatives, kept: NDArray[np.bool_], query: Query, counts: NDArray[np.int64], width: int, on_short: str
) -> Negatives:
    """`take` of the first slots of each row that are kept (B, n), with their scores."""
    order = np.argsort(~kept, axis=1, kind="stable")
    choice = like_query(order, query), like_query(np.take_along_axis(kept, order, axis=1), query)
    return take(drawn, *choice, counts, width, on_short, drawn.scores)


def _beside_ids(drawn: Negatives) -> dict[str, Array]:
    """{name: (B, n, ...)} what a pool gives of each candidate beside its id, such as its side or source."""
    names = (name for name in PER_SLOT if name not in ("ids", "log_q", "scores"))
    return {name: getattr(drawn, name) for name in names if getattr(drawn, name) is not None}


def take_highest(
    drawn: Negatives, values: Array, counts: NDArray[np.int64], width: int, on_short: str, scores: Array
) -> Negatives:
    """`take` after `pick`: the candidates of the highest values (B, n), -inf in empty slots; the answer has `scores`.

    On a CPU it is one compiled pass instead of a dozen over (B, n) and (B, K), which from a batch of a thousand rows
    on cost more than the choice itself.
    """
    on_cpu = not is_torch(values) or values.device.type == "cpu"
    if not on_cpu or not 0 < width < min(values.shape[1], SHORT + 1) or _beside_ids(drawn):
        return take(drawn, *pick(values, scores > -np.inf, width), counts, width, on_short, scores)
    compared, held, ids = (np.ascontiguousarray(to_numpy(array)) for array in (values, scores, drawn.ids))
    order, chosen = (np.empty((len(ids), width), np.int64) for _ in range(2))
    taken = np.empty((len(ids), width), held.dtype)
    in_rows(kernels.take_highest, len(ids), ids.size, compared, held, ids, counts, order, chosen, taken)
    dropped = shortfall(on_short, chosen, counts)
    if is_torch(values):
        chosen, taken = to_torch(chosen), to_torch(taken)
    return replace(drawn, ids=chosen, scores=taken, log_q=None, dropped=dropped)


def reasons(name: str, counts: NDArray[np.int64], ids: Array, fit: Array) -> dict[str, int]:
    """Why slots are empty: {"exhausted": beyond a row's candidates, name: beyond those that are fit (B, n)}."""
    n_candidates = np.count_nonzero(to_numpy(ids) >= 0, axis=1)
    n_fit = np.count_nonzero(to_numpy(fit), axis=1)
    beyond = int(np.maximum(counts - n_candidates, 0).sum())
    unfit = int(np.maximum(np.minimum(counts, n_candidates) - n_fit, 0).sum())
    return {reason: count for reason, count in ((EXHAUSTED, beyond), (name, unfit)) if count}
