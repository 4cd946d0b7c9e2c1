"""Static sampling: negatives as the pool draws them. The distribution does not depend on the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from naysay.checks import public
from naysay.samplers._choose import draw_k
from naysay.samplers._settings import FromPool, check_pool
from naysay.types import Negatives, Pool, Query

__all__ = ["Static"]


@final
@public
@dataclass(eq=False, repr=False)
class Static(FromPool):
    """Take k candidates as the pool draws them: uniform (RNS) or by weight (PNS), from any pool.

    log_q is the pool's and stays exact, because nothing is selected after the draw.

    Args:
        pool: Where candidates come from. It excludes known positives.

    Examples:
        >>> import naysay as ns
        >>> pool = ns.pools.Everything(ns.Positives.from_pairs([0, 1], [1, 0], n_items=5))
        >>> Static(pool).sample(ns.Query([0, 1]), 3, rng=ns.rng_for(0)).shape
        (2, 3)
    """

    _made_of = ("pool",)

    pool: Pool

    def __post_init__(self) -> None:
        check_pool(self.pool)

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives."""
        return draw_k(self.pool, query, k, rng).like(query)
