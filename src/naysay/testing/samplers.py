"""check_sampler: the promises of a pool, and those about k and array types that samplers add."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Collection, Iterator
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from naysay.arrays import is_torch, to_numpy, to_torch
from naysay.checks import public, raise_invalid
from naysay.testing import pools
from naysay.testing._trials import MANY, Known, MakeQuery, Trial, batches
from naysay.testing.promises import Promises
from naysay.types import Negatives, Query, Sampler

_ROWS = 1024


def k(trial: Trial) -> Iterator[str]:
    """K may be (B,) ints, or a float that is realised row by row: K = ceil(k), and k on average."""
    complaint = pools.layout(trial.ask(trial.batches.mixed(MANY), trial.uneven()), trial.uneven())
    if complaint is not None:
        yield f"{complaint}, with k of shape (B,)"
    wanted = trial.slots - 0.5
    answer = trial.ask(trial.batches.mixed(_ROWS), wanted)
    if answer.shape != (_ROWS, math.ceil(wanted)):
        yield f"returned shape {answer.shape} for k = {wanted} and {_ROWS} rows"
    filled = int(np.count_nonzero(to_numpy(answer.ids) >= 0))
    lowest = (filled + answer.dropped.get("exhausted", 0)) / _ROWS
    highest = (filled + sum(answer.dropped.values())) / _ROWS
    slack = 6 * 0.5 / math.sqrt(_ROWS)  # six standard deviations of a mean of coin tosses
    if not (lowest <= wanted + slack and highest >= wanted - slack):
        yield f"gave {filled / _ROWS:.2f} negatives a row for k = {wanted}, with dropped={dict(answer.dropped)}"


def arrays(trial: Trial) -> Iterator[str]:
    """A NumPy query is answered in NumPy, a torch query in torch, on its device."""
    query = trial.batches.mixed(MANY)
    foreign = [name for name, value in _arrays_of(trial.ask(query)) if not isinstance(value, np.ndarray)]
    if foreign:
        yield f"answered a NumPy query with {foreign[0]} that is not a NumPy array"
    if importlib.util.find_spec("torch") is None:
        return
    given = {name: to_torch(value) for name, value in _arrays_of(query)}
    answer = trial.ask(replace(query, **given))
    foreign = [
        name for name, value in _arrays_of(answer) if not is_torch(value) or value.device != given["anchors"].device
    ]
    if foreign:
        yield f"answered a torch query with {foreign[0]} that is not a tensor on its device"


def _arrays_of(flowing: Query | Negatives) -> list[tuple[str, Any]]:
    """The array fields of a query or answer that are not None."""
    named = [(f.name, getattr(flowing, f.name)) for f in fields(flowing)]
    return [(name, value) for name, value in named if hasattr(value, "dtype")]


_FIRST = ("state", "on_short", "shape", "range", "exclusion", "distinct")

PROMISES: Promises[Trial] = {
    **{name: pools.PROMISES[name] for name in _FIRST},
    "k": k,
    **{name: promise for name, promise in pools.PROMISES.items() if name not in _FIRST},
    "arrays": arrays,
}


@public
def check_sampler(
    sampler: Sampler,
    positives: Known | None = None,
    *,
    anchors: ArrayLike | None = None,
    k: int = 4,
    seed: int = 0,
    query: MakeQuery | None = None,
    without: Collection[str] = (),
) -> None:
    """Raise PromiseBroken if `sampler` breaks a promise of a sampler.

    The promises are those of `check_pool`, and:

    k             (B,) ints: K is the largest, unused slots are -1 and not dropped; a float: K = ceil(k), k on average
    arrays        a NumPy query is answered in NumPy and, if torch is installed, a torch query in torch on its device

    A row only runs out if `positives` leave it fewer than k items, because many samplers raise if k is above their
    number of candidates. A sampler that always takes the same items (the nearest of all) does not promise randomness:
    pass without=("randomness",).

    Args:
        sampler: Anything with sample(query, k, *, rng) -> Negatives.
        positives: As in `check_pool`.
        anchors: As in `check_pool`.
        k: The largest number of negatives per row.
        seed: As in `check_pool`.
        query: As in `check_pool`.
        without: As in `check_pool`.

    Examples:
        >>> import naysay as ns
        >>> known = ns.Positives.from_pairs([0, 0, 1], [0, 1, 2], n_items=9)
        >>> class Mine:
        ...     def sample(self, query, k, *, rng):
        ...         return ns.Negatives(rng.integers(0, 9, (len(query), k)))
        >>> check_sampler(Mine(), known)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        naysay.testing.promises.PromiseBroken: `exclusion`: Mine.sample returned item 0 for anchor 0, which is known...
    """
    if not isinstance(sampler, Sampler):
        raise_invalid("sampler", "an object with sample(query, k, *, rng)", f"a {type(sampler).__name__}")
    made = batches(sampler, positives, anchors, query, seed)
    trial = pools.trial_of("sampler", sampler, sampler.sample, made, ("k", k), widest=0)
    pools.run(f"{type(sampler).__name__}.sample", PROMISES, trial, without)
