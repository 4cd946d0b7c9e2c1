"""SupportViews: negatives that are similar to one of several views of the anchor."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import check_number, check_one_of, check_whole, public
from naysay.detectors._pairs import (
    Embed,
    as_vectors,
    best_products,
    check_function,
    check_width,
    embedded,
    slot_vectors,
    unit,
)
from naysay.detectors._slots import as_suspicion, check_query_and_negatives, filled_slots, like, query_anchors
from naysay.text import described
from naysay.types import Array, MadeOf, Negatives, Query

AGGREGATES = ("max", "mean")
_OUTSIDE = 0.49  # the largest suspicion of a slot outside the row's top


@final
@public
class SupportViews(MadeOf):
    """Suspect the negatives of a row that are most similar to the views of the anchor, above a threshold.

        score_j    = max (or mean) over v of cos(view_v(anchor), j)
        g(s)       = (s + 1) / (2 (t + 1)) below the threshold t,   1/2 + (s - t) / (2 (1 - t)) from it on
        suspicion  = g(score_j) for the row's top,   min(g(score_j), 0.49) for the others

    Of equal scores the earlier slot ranks higher. The threshold is a cosine of *this* encoder: check `scores` of known
    positives first. `embed` is called once for each id in the batch.

    Huynh, Kornblith, Walter, Maire, Khademi. Boosting Contrastive Self-Supervised Learning with False Negative
    Cancellation. WACV 2022 (FNC), by its abstract and published code, of which the defaults are. That code also counts
    the anchor's own two views, and requires a score strictly above the threshold.

    Args:
        views: views(anchors (B,)) -> (B, S, d), vectors of S views of each anchor, e.g. other crops of the image; or
            an array (n_anchors, S, d) of them.
        embed: embed(ids) -> (..., d), the candidates' vectors. None: `negatives.vectors`.
        top: The largest number of flagged slots in a row. None: any number.
        threshold: The smallest cosine of a flagged slot, from -1 (only `top` decides) to below 1.
        aggregate: "max" or "mean" over the views.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> views = np.array([[[1.0, 0.0], [0.6, 0.8]]])                          # two views of anchor 0
        >>> items = np.array([[0.8, 0.6], [0.0, 1.0], [-1.0, 0.0]])
        >>> detector = SupportViews(views, lambda ids: items[ids], top=2, threshold=0.8)
        >>> detector.scores(ns.Query([0]), ns.Negatives(np.array([[0, 1, 2, -1]]))).round(2)
        array([[ 0.96,  0.8 , -0.6 ,  0.  ]])
        >>> detector.suspicion(ns.Query([0]), ns.Negatives(np.array([[0, 1, 2, -1]]))).round(2)
        array([[0.9 , 0.5 , 0.11, 0.  ]])
    """

    _made_of = ("views", "embed")

    def __init__(
        self,
        views: Any,
        embed: Embed | None = None,
        *,
        top: int | None = 10,
        threshold: float = 0.7,
        aggregate: str = "max",
    ) -> None:
        check_function("embed", embed)
        check_one_of("aggregate", aggregate, AGGREGATES)
        self.threshold = check_number("threshold", threshold, at_least=-1, below=1, advice="It is a cosine.")
        if not callable(views):
            views = as_vectors("views", views, ("n", "S", "d"))
        self.views, self.embed = views, embed
        self.top = None if top is None else check_whole("top", top, 1)
        self.aggregate = aggregate

    def suspicion(self, query: Query, negatives: Negatives) -> Array:
        """Return (B, K) in [0, 1]: at least 1/2 where a slot is in its row's top and reaches the threshold."""
        scores, threshold = self._scores(query, negatives), self.threshold
        below = 0.5 * (scores + 1) / (threshold + 1) if threshold > -1 else np.zeros_like(scores)
        suspicion = np.where(scores < threshold, below, 0.5 + 0.5 * (scores - threshold) / (1 - threshold))
        if self.top is not None and self.top < scores.shape[1]:
            order = np.argsort(np.where(filled_slots(negatives), -scores, np.inf), axis=1, kind="stable")
            others = order[:, self.top :]
            limited = np.minimum(np.take_along_axis(suspicion, others, axis=1), _OUTSIDE)
            np.put_along_axis(suspicion, others, limited, axis=1)
        return as_suspicion(suspicion, negatives)

    def scores(self, query: Query, negatives: Negatives) -> Array:
        """Return (B, K) the cosine of each slot with the anchor's views, from -1 to 1; 0 in empty slots."""
        return like(self._scores(query, negatives), negatives.ids)

    def _scores(self, query: Query, negatives: Negatives) -> NDArray[np.float64]:
        check_query_and_negatives(query, negatives)
        vectors, places = slot_vectors(negatives, self.embed)
        if not len(vectors):
            return np.zeros(negatives.shape)
        views = self._views(query)
        check_width("views", views, vectors.shape[1], "the candidates'")
        views = unit("views", views)
        if self.aggregate == "mean":  # the mean of dot products is the dot product with the mean
            views = views.mean(axis=1, keepdims=True)
        vectors = unit("negatives.vectors" if self.embed is None else "embed", vectors)
        cosines = best_products(views, vectors, places).astype(np.float64)
        return np.where(filled_slots(negatives), np.clip(cosines, -1.0, 1.0), 0.0)

    def _views(self, query: Query) -> NDArray[Any]:
        """(B, S, d) the views of the query's anchors."""
        if callable(self.views):
            return as_vectors("views", embedded(self.views, query.anchors), (len(query), "S", "d"))
        advice = "For triples, pass a function as `views`."
        return np.asarray(self.views[query_anchors(query, len(self.views), "rows of views", advice)])

    __repr__ = described
