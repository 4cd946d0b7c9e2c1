"""Static sampling: negatives as the pool draws them. The distribution does not depend on the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from naysay.checks import public, raise_invalid
from naysay.samplers._candidates import FromPool, check_is_pool, draw_k
from naysay.types import Negatives, Pool, Query


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
        check_is_pool(self.pool)

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives."""
        return draw_k(self.pool, query, k, rng).like(query)

    def log_chance(self, query: Query, ids: Any) -> Any:
        """(B, K) the log-probability of ids (B, K) in a draw of one, if the pool has `log_chance`."""
        if not hasattr(self.pool, "log_chance"):
            raise_invalid("pool", "a pool with log_chance(query, ids), such as Everything", type(self.pool).__name__)
        return self.pool.log_chance(query, ids)
