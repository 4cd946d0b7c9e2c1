"""User-oriented sampling: the negatives of anchors with more positives count for more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, final

import numpy as np

from naysay.checks import check_range, public, raise_invalid
from naysay.positives import Positives
from naysay.samplers._draw import check_is_pool, draw_k
from naysay.types import Negatives, Pool, Query, anchor_ids, check_query


@final
@public
class UserOriented:
    """Take k candidates of each anchor and weigh them by count(anchor) / mean count.

    The more an anchor is known to like, the surer it is that what is missing was passed over: a missing pair (a, i)
    weighs sum_j R_aj. Pan et al. One-Class Collaborative Filtering. ICDM 2008, Table I. The paper also samples in
    that proportion, which has the same expectation with more noise; here the number stays k and `weights` (B, K) carry
    the proportion. Rows that are drawn from positive *pairs* have it already: use `Static` there.

    Args:
        pool: Where candidates come from.
        positives: Whose counts are taken; the mean is over anchors with at least one positive.
    """

    def __init__(self, pool: Pool, positives: Positives) -> None:
        """Keep the share of each anchor, 8 bytes each."""
        check_is_pool(pool)
        if not isinstance(positives, Positives):
            raise_invalid("positives", "a Positives", type(positives).__name__)
        counts = positives.count()
        if not counts.any():
            raise_invalid("positives", "of at least one pair", "none")
        self.pool = pool
        self.distinct = getattr(pool, "distinct", None)
        self._share = counts / counts[counts > 0].mean()

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """(B, K) negatives with `weights`; k is a number, K = ceil(k), realised per row; or (B,) of them."""
        check_query(query)
        anchors = anchor_ids(query)
        if anchors.ndim != 1:
            raise_invalid("query.anchors", "of shape (B,)", "triples")
        check_range("anchors", anchors, len(self._share), "anchors")
        drawn = draw_k(self.pool, query, k, rng)
        weights = np.where(drawn.ids >= 0, self._share[anchors][:, None], 0.0)
        return replace(drawn, weights=weights).like(query)
