"""What samplers share: a pool that is one, and k candidates of it in K slots."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

from naysay.arrays import to_numpy
from naysay.checks import raise_invalid
from naysay.quantity.realise import slots
from naysay.types import Negatives, Pool, Query, check_query

# What stands in an empty slot, where it is not 0.
EMPTY = {"ids": -1, "parents": -1, "side": -1, "source": -1}
_UNLIKE_IDS = ("source_names", "dropped")


def check_is_pool(pool: object) -> None:
    """Refuse what has no draw, and a pool's class in the place of a pool."""
    rule = "a pool, with a method draw(query, n, *, rng)"
    if isinstance(pool, type):
        raise_invalid("pool", rule, f"the class {pool.__name__}", "Make one first, and pass that.")
    if not isinstance(pool, Pool):
        raise_invalid("pool", rule, type(pool).__name__)


def draw_k(pool: Pool, query: Query, k: Any, rng: np.random.Generator) -> Negatives:
    """(B, K) candidates of the pool. K is ceil(k) for one k, even if chance gave no row that many; else the largest."""
    check_query(query)
    wanted = slots(k, len(query), rng)
    drawn = pool.draw(query, wanted, rng=rng)
    if isinstance(wanted, int) or np.ndim(to_numpy(k)) == 1:
        return drawn
    return _widened(drawn.numpy(), int(np.ceil(float(k))))


def _widened(drawn: Negatives, width: int) -> Negatives:
    """The same with empty slots on the right, up to `width`."""
    more = width - drawn.shape[1]
    if more <= 0:
        return drawn
    wider: dict[str, Any] = {}
    for name in (field.name for field in fields(Negatives) if field.name not in _UNLIKE_IDS):
        array = getattr(drawn, name)
        if array is not None:
            margins = [(0, more) if axis == 1 else (0, 0) for axis in range(array.ndim)]
            wider[name] = np.pad(array, margins, constant_values=EMPTY.get(name, 0))
    return replace(drawn, **wider)
