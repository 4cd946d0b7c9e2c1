"""Picking from the candidates that may be taken: the highest, any, or softly; and why slots found none."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import is_torch, need_torch, to_numpy
from naysay.checks import public
from naysay.pools._slots import EXHAUSTED
from naysay.rng import key_from
from naysay.samplers._choose import gather, gumbel, top
from naysay.types import Array


@public
def where(condition: Array, values: Array, other: float) -> Array:
    """What `values` holds where the condition does, the number `other` elsewhere."""
    if is_torch(values):
        return need_torch().where(condition, values, other)
    return np.where(condition, values, values.dtype.type(other))


def pick(values: Array, may: Array, width: int) -> tuple[Array, Array]:
    """(B, w) slots of the highest values among those that `may` be taken (B, n), and which of them hold; w <= width."""
    order = top(where(may, values, -np.inf), min(width, values.shape[1]))
    return order, gather(may, order)


def pick_any(may: Array, width: int, key: np.uint64, like: Array) -> tuple[Array, Array]:
    """The same, at random: each that may be taken is as likely as the next. Noise is in the type of `like`."""
    return pick(gumbel(tuple(may.shape), key, like), may, width)


def pick_softly(
    values: Array,
    may: Array,
    width: int,
    *,
    among: int | None,
    temperature: float,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """The same, as hard as it is told to be: the highest, any of the `among` highest, or by softmax.

    A temperature above 0 takes them without repeats from softmax(values / temperature), the first drawn first.
    """
    if among is not None:
        highest, held = pick(values, may, among)
        place, kept = pick_any(held, width, key_from(rng), values)
        return gather(highest, place), kept
    return pick(softened(values, temperature, rng), may, width)


def softened(values: Array, temperature: float, rng: np.random.Generator) -> Array:
    """Values whose k highest are k draws without repeats from softmax(values / temperature); at 0 as they are."""
    if temperature == 0:
        return values
    noise = gumbel(tuple(values.shape), key_from(rng), values)
    # The same order twice, and each form is finite where the other may not be.
    return values + temperature * noise if temperature < 1 else values * (1 / temperature) + noise


@public
def one_after_other(first: tuple[Array, Array], then: tuple[Array, Array]) -> tuple[Array, Array]:
    """What held in `first`, and behind it what held in `then`, row by row."""
    if is_torch(first[0]):
        torch = need_torch()
        order, held = (torch.cat(pair, dim=1) for pair in zip(first, then, strict=True))
        place = torch.sort((~held).to(torch.int8), dim=1, stable=True).indices
    else:
        order, held = (np.concatenate(pair, axis=1) for pair in zip(first, then, strict=True))
        place = np.argsort(~held, axis=1, kind="stable")
    return gather(order, place), gather(held, place)


def reasons(name: str, counts: NDArray[np.int64], ids: Array, fit: Array) -> dict[str, int]:
    """{"exhausted": slots asked for beyond a row's candidates, name: slots beyond those of them that are fit}.

    Args:
        counts: (B,) slots asked for.
        ids: (B, n) the candidates, -1 where there is none, and which were wanted.
        fit: (B, n) the candidates, -1 where there is none, and which were wanted.
    """
    held = np.count_nonzero(to_numpy(ids) >= 0, axis=1)
    wanted = np.count_nonzero(to_numpy(fit), axis=1)
    beyond = int(np.maximum(counts - held, 0).sum())
    unfit = int(np.maximum(np.minimum(counts, held) - wanted, 0).sum())
    return {reason: count for reason, count in ((EXHAUSTED, beyond), (name, unfit)) if count}
