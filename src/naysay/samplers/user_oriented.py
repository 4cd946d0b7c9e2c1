"""User-oriented sampling: negatives of anchors with more positives get more weight."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, final

import numpy as np

from naysay.checks import check_kind, check_range, public, raise_invalid
from naysay.positives import Positives
from naysay.samplers._candidates import FromPool, check_is_pool, draw_k
from naysay.text import described
from naysay.types import Negatives, Pool, Query, anchor_ids, check_query


@final
@public
class UserOriented(FromPool):
    """Take k candidates of each anchor, with weight count(anchor) / mean count.

    The more positives an anchor has, the more likely it is that a missing pair is a true negative: a missing pair
    (a, i) gets weight sum_j R_aj. Pan et al. One-Class Collaborative Filtering. ICDM 2008, Table I. The paper also
    samples in that proportion, which has the same expectation and more variance. Here k stays the same, and `weights`
    (B, K) have the proportion. Rows that are drawn from positive *pairs* already have it: use `Static` for them.

    Args:
        pool: Where candidates come from.
        positives: Whose counts are used. The mean is over anchors with at least one positive.

    Examples:
        >>> import naysay as ns
        >>> known = ns.Positives.from_pairs([0, 1, 1, 1], [0, 1, 2, 3], n_items=9)
        >>> sampler = UserOriented(ns.pools.Everything(known), known)
        >>> sampler.sample(ns.Query([0, 1]), 2, rng=ns.rng_for(0)).weights
        array([[0.5, 0.5],
               [1.5, 1.5]])
    """

    _made_of = ("pool",)

    def __init__(self, pool: Pool, positives: Positives) -> None:
        check_is_pool(pool)
        check_kind("positives", positives, Positives, "a Positives")
        counts = positives.count()
        if not counts.any():
            raise_invalid("positives", "of at least one pair", "none")
        self.pool, self._positives = pool, positives
        self._share = counts / counts[counts > 0].mean()

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives with `weights`."""
        check_query(query)
        anchors = anchor_ids(query)
        if anchors.ndim != 1:
            raise_invalid("query.anchors", "of shape (B,)", "triples")
        check_range("anchors", anchors, len(self._share), "anchors")
        drawn = draw_k(self.pool, query, k, rng)
        weights = np.where(drawn.ids >= 0, self._share[anchors][:, None], 0.0)
        return replace(drawn, weights=weights).like(query)

    def __repr__(self) -> str:
        return described(self, positives=self._positives)
