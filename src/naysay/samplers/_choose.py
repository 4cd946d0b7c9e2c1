"""Draw candidates, choose k of each row, and turn the choice into negatives; in NumPy or torch.

A choice is a pair `(order, kept)`: (B, w) slots in the order of choice, and which of them are filled; those stand first
in their row. `take` turns a choice into negatives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay._slots import EMPTY, PER_SLOT, gather, like_query, repeated, where
from naysay.arrays import is_torch, module_of, need_torch, of_type, to_numpy, to_torch
from naysay.checks import raise_invalid, shown
from naysay.kernels.random import uniforms
from naysay.kernels.threads import in_rows
from naysay.kernels.top import highest
from naysay.pools._slots import shortfall, slot_counts
from naysay.pools.in_batch import InBatch
from naysay.pools.memory import Memory
from naysay.quantity.schedules import slots
from naysay.rng import generator_of, key_from
from naysay.types import OF_ROWS, Array, Negatives, Pool, Query, check_query

Choice = tuple[Array, Array]
Ids = NDArray[np.int64]
Floats = NDArray[np.float64]
# Up to this k a list kept in order is the fastest way; beyond it a partial sort is.
_SHORT_LIST = 32


# ---- how many, and from what ----------------------------------------------------------------------------


def wanted_slots(k: Any, rows: int, rng: np.random.Generator, **limits: int | None) -> tuple[Ids, int]:
    """K of each row (B,), and K: ceil(k) for one k, else the largest. Raises if K is above one of the named limits."""
    counts, width = slot_counts(slots(k, rows, rng), rows)
    if np.ndim(to_numpy(k)) == 0:
        width = max(width, int(np.ceil(float(to_numpy(k)))))
    for name, limit in limits.items():
        if limit is not None and width > limit:
            raise_invalid("k", f"at most `{name}`, {limit}", shown(k))
    return counts, width


def in_use(counts: Ids, width: int, like: Array = None) -> Array:
    """(B, K) bool: the slots that each row asks for, in the array type and on the device of `like`."""
    wanted = np.arange(width) < counts[:, None]
    return to_torch(wanted, like.device) if is_torch(like) else wanted


def draw_k(pool: Pool, query: Query, k: Any, rng: np.random.Generator) -> Negatives:
    """(B, K) candidates of the pool as they are drawn."""
    check_query(query)
    wanted = slots(k, len(query), rng)
    drawn = pool.draw(query, wanted, rng=rng)
    if isinstance(wanted, int) or np.ndim(to_numpy(k)) == 1:
        return drawn
    return _widened(drawn.numpy(), int(np.ceil(float(k))))  # a fraction: perhaps no row got that many


def _widened(drawn: Negatives, width: int) -> Negatives:
    """The same with empty slots on the right, up to `width`."""
    more = width - drawn.shape[1]
    if more <= 0:
        return drawn
    wider: dict[str, Any] = {}
    for name in PER_SLOT:
        array = getattr(drawn, name)
        if array is not None:
            margins = [(0, more) if axis == 1 else (0, 0) for axis in range(array.ndim)]
            wider[name] = np.pad(array, margins, constant_values=EMPTY.get(name, 0))
    return replace(drawn, **wider)


def candidates_of(pool: Pool, query: Query, n: int | None, rng: np.random.Generator) -> Negatives:
    """(B, n) candidates of the pool in the query's array type; with n=None all that a memory or batch has.

    A pool may have draw_candidates(query, n, *, rng) beside draw: the same without log_q, which no choice can keep.
    """
    all_entries = n is None
    if all_entries and not isinstance(pool, InBatch | Memory):
        raise_invalid("candidates", "a number unless the pool is Memory or InBatch", None)
    draw: Callable[..., Negatives] = getattr(pool, "draw_candidates", pool.draw)
    drawn = draw(query, n, rng=rng)
    if all_entries and getattr(pool, "distinct", False):
        drawn = replace(drawn, ids=_without_duplicates(drawn.ids))
    if drawn.shape[1] == 0:  # an empty memory: a slot to choose from, which is empty
        drawn = draw(query, 1, rng=rng)
    return drawn.like(query)


def _without_duplicates(ids: Ids) -> Ids:
    """(B, n) the same, where each column is one id or -1: of an id in several columns only the last stays in a row."""
    id_of_column = ids.max(axis=0, initial=-1)
    _, place, counts = np.unique(id_of_column, return_inverse=True, return_counts=True)
    duplicated = np.flatnonzero((counts[place] > 1) & (id_of_column >= 0))
    if not len(duplicated):
        return ids
    newest_first = ids[:, duplicated[::-1]]
    once = ids.copy()
    once[:, duplicated[::-1]] = np.where(repeated(newest_first), -1, newest_first)
    return once


def rows_of(query: Query, index: Ids) -> Query:
    """Some rows of a query."""
    given = {name: getattr(query, name) for name in OF_ROWS if getattr(query, name) is not None}
    chosen = {
        name: part.index_select(0, to_torch(index, part.device)) if is_torch(part) else part[index]
        for name, part in given.items()
    }
    return Query(**chosen, step=query.step)


# ---- noise ----------------------------------------------------------------------------------------------


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
    if _on_device(like):
        tiny = need_torch().finfo(like.dtype).tiny
        return -(-_uniform_on_device(shape, key, like).clamp_min(tiny).log()).log()
    noise: Any = np.empty(shape)
    in_rows(uniforms, len(noise), noise.size, key, noise)  # in a third of the time of NumPy's generators
    np.negative(np.log(noise, out=noise), out=noise)
    noise = of_type(np.log(noise, out=noise), like)
    return module_of(noise).negative(noise, out=noise)


def uniform(shape: tuple[int, ...], key: np.uint64, like: Array, between: tuple[float, float] = (0.0, 1.0)) -> Array:
    """Uniform numbers in [low, high) in the array type, number type and device of `like`; low if both are equal.

    On a CPU they are NumPy's for both array types, so that both draw the same; another device has its own generator.
    """
    low, high = between
    if _on_device(like):
        return low + (high - low) * _uniform_on_device(shape, key, like)
    return of_type(low + (high - low) * generator_of(key).random(shape), like)


def _on_device(values: Array) -> bool:
    return is_torch(values) and values.device.type != "cpu"


def _uniform_on_device(shape: tuple[int, ...], key: np.uint64, like: Array) -> Array:
    torch = need_torch()
    generator = torch.Generator(device=like.device).manual_seed(int(key) & ((1 << 63) - 1))
    return torch.rand(shape, generator=generator, device=like.device, dtype=like.dtype)


# ---- choices --------------------------------------------------------------------------------------------


def top(scores: Array, width: int) -> Array:
    """(B, width) slots of the highest scores, highest first; -inf comes last. width is at most n.

    On a CPU NumPy chooses for both array types, so that both give the same, and of equal scores the earlier slot
    comes first. On another device the order of equal scores is the device's.
    """
    if _on_device(scores):
        return scores.topk(width, dim=1).indices
    order = _top_numpy(np.asarray(to_numpy(scores)), width)
    return to_torch(order) if is_torch(scores) else order


def _top_numpy(scores: NDArray[Any], width: int) -> Ids:
    """`top` of a NumPy array: a list kept in order if it is short; else a partial sort, whole where rows are tied."""
    if not 0 < width < scores.shape[1]:
        return np.argsort(-scores, axis=1, kind="stable")[:, :width]
    if width <= _SHORT_LIST:
        wide = np.ascontiguousarray(scores, np.result_type(scores.dtype, np.float32))  # loops take no half precision
        order = np.empty((len(scores), width), np.int64)
        in_rows(highest, len(scores), scores.size, wide, order)
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


def pick(values: Array, eligible: Array, width: int) -> Choice:
    """The `width` highest values, or all if there are fewer, among the slots that are eligible (B, n)."""
    order = top(where(eligible, values, -np.inf), min(width, values.shape[1]))
    return order, gather(eligible, order)


def pick_any(eligible: Array, width: int, key: np.uint64, like: Array) -> Choice:
    """The same uniformly at random, by noise in the number type of `like`."""
    return pick(gumbel(tuple(eligible.shape), key, like), eligible, width)


def one_after_other(first: Choice, then: Choice) -> Choice:
    """What is kept in `first`, followed by what is kept in `then`, row by row."""
    order, kept = (module_of(one).concatenate([one, other], 1) for one, other in zip(first, then, strict=True))
    if is_torch(kept):
        place = (~kept).char().sort(dim=1, stable=True).indices
    else:
        place = np.argsort(~kept, axis=1, kind="stable")
    return gather(order, place), gather(kept, place)


def draw_independent(chance: Floats, width: int, rng: np.random.Generator) -> Ids:
    """(B, width) places by the probabilities of each row, with replacement; 0 in a row of zeros."""
    until = np.cumsum(chance, axis=1)
    total = np.where(until[:, -1:] > 0, until[:, -1:], 1.0)
    last_possible = np.argmax(np.where(chance > 0, np.arange(1, chance.shape[1] + 1), 0), axis=1)[:, None]
    # One search for all rows: row b has its cumulated chances between 2 b and 2 b + 1.
    rows = np.arange(len(chance))[:, None]
    drawn = rng.random((len(chance), width))
    place = np.searchsorted((2 * rows + until / total).ravel(), 2 * rows + drawn, "right")
    return np.asarray(np.minimum(place - rows * chance.shape[1], last_possible), np.int64)


# ---- answers --------------------------------------------------------------------------------------------


def take(drawn: Negatives, choice: Choice, counts: Ids, width: int, on_short: str, scores: Array = None) -> Negatives:
    """The chosen slots of `drawn`, at most counts[b] in row b, as (B, width).

    log_q is None: a choice after the draw has no exact probability.
    """
    order, kept = (_as_wide(part, width) for part in choice)
    kept = kept & in_use(counts, width, order)
    select = module_of(order).where
    chosen: dict[str, Array] = {}
    for name in PER_SLOT:
        given = getattr(drawn, name) if name != "scores" else scores
        if given is not None and name != "log_q":
            values = gather(given, order)
            filled = kept.reshape(*kept.shape, *(1,) * (values.ndim - 2))
            chosen[name] = select(filled, values, EMPTY.get(name, 0))
    dropped = shortfall(on_short, to_numpy(chosen["ids"]), counts)
    return replace(drawn, **{"scores": None, "log_q": None, **chosen, "dropped": dropped})


def _as_wide(values: Array, width: int) -> Array:
    """(B, width) the first values of each row; 0 where there are fewer."""
    missing = width - values.shape[1]
    if missing <= 0:
        return values[:, :width]
    if is_torch(values):
        return need_torch().nn.functional.pad(values, (0, missing))
    return np.pad(values, ((0, 0), (0, missing)))


def take_kept(
    drawn: Negatives, kept: NDArray[np.bool_], query: Query, counts: Ids, width: int, on_short: str
) -> Negatives:
    """`take` of the first slots of each row that are kept (B, n), with their scores."""
    order = np.argsort(~kept, axis=1, kind="stable")
    choice = like_query(order, query), like_query(np.take_along_axis(kept, order, axis=1), query)
    return take(drawn, choice, counts, width, on_short, drawn.scores)
