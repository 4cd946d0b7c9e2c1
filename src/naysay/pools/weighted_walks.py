"""WeightedWalks: the ends of walks that follow heavy edges more often, such as frequent co-occurrence."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from naysay.checks import check_kind, public, raise_invalid
from naysay.pools._edge_steps import edge_steps, first_allowed, generator
from naysay.pools._slots import anchors_of, check_count, check_settings, shown_settings, slot_counts
from naysay.pools.khop import positive_rows
from naysay.positives import Positives
from naysay.rng import key_from
from naysay.types import Negatives, Query, positive_ids


@final
@public
class WeightedWalks:
    """Draw the ends of walks of `length` steps from the anchor, each step by the weights of the edges.

    A walk ends at v with probability `[P^length](anchor, v)`, P = D^-1 A with the weights in A. With length 1 it is the
    anchor's own row of weights. An end that is the anchor, that is in `positives`, that is the row's own positive, or
    that is already in a distinct row, is rejected. Unlike `Walks` the graph's edges are no exclusion: in a network of
    words, those that occur together are the candidates, and only the pairs of `positives` are known. log_q is None,
    because the total probability of what is allowed is not computed.

    Zhang and Zweigenbaum. GNEG: Graph-Based Negative Sampling for word2vec. ACL 2018: the graph is the co-occurrence
    network, its weights the counts.

    Cost: `length` binary searches over the edges per walk; 8 bytes per edge.

    Args:
        graph: A square Positives; its pairs are the edges, followed from anchor to item.
        weights: (edges,) at least 0, by anchor, then by item; None: all equal.
        length: Steps of a walk, at least 1.
        walks: The maximum number of walks per row.
        positives: Pairs to exclude, on the same nodes.
        distinct: Whether a row has an id at most once (default), or draws are independent.
        on_short: "pad" or "raise".

    Examples:
        >>> import naysay as ns
        >>> words = ns.Positives.from_edges([0, 0], [1, 2])
        >>> pool = WeightedWalks(words, [1.0, 3.0, 1.0, 3.0], length=1, distinct=False)
        >>> drawn = pool.draw(ns.Query([0] * 1000), 4, rng=ns.rng_for(0))
        >>> bool(0.7 < (drawn.ids == 2).mean() < 0.8)                       # 3 / (1 + 3)
        True
    """

    def __init__(
        self,
        graph: Positives,
        weights: ArrayLike | None = None,
        length: int = 1,
        walks: int = 1000,
        positives: Positives | None = None,
        *,
        distinct: bool = True,
        on_short: str = "pad",
    ) -> None:
        """Cumulate the weights: O(edges)."""
        check_kind("graph", graph, Positives, "a square Positives")
        if graph.n_anchors != graph.n_items:
            raise_invalid("graph", "square", f"{graph.n_anchors} anchors and {graph.n_items} items")
        if positives is not None:
            check_kind("positives", positives, Positives, "a Positives")
            if (positives.n_anchors, positives.n_items) != (graph.n_anchors, graph.n_items):
                raise_invalid("positives", f"of {graph.n_items} nodes", f"{positives.n_anchors} x {positives.n_items}")
        self.length, self.walks = check_count("length", length), check_count("walks", walks)
        self.distinct, self.on_short = check_settings(distinct, on_short)
        self.graph, self.positives = graph, positives
        self._steps = edge_steps(positive_rows(graph), weights)

    def draw(self, query: Query, n: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, n) negatives for the query's anchors; n is a number, or (B,) numbers."""
        anchors = anchors_of(query, self.graph.n_items, "nodes")
        own = anchors if query.positives is None else positive_ids(query)
        counts, width = slot_counts(n, len(anchors))

        def forbidden(ids: NDArray[np.int64]) -> NDArray[np.bool_]:
            bad = (ids == anchors[:, None]) | (ids == own[:, None])
            known = False if self.positives is None else self.positives.contains(anchors, ids, relation="any")
            return np.asarray(bad | known)

        return first_allowed(
            lambda made, many: self._ends(anchors, many, made),
            forbidden,
            counts,
            width,
            key=key_from(rng),
            walks=self.walks,
            distinct=self.distinct,
            on_short=self.on_short,
        )

    def endpoints(self, anchors: ArrayLike, count: int, *, rng: np.random.Generator) -> NDArray[np.int64]:
        """(B, count) ends of walks, without rejection; -1 for a walk without an end."""
        nodes = anchors_of(Query(anchors), self.graph.n_items, "nodes")
        return self._ends(nodes, check_count("count", count, 0), generator(key_from(rng), 0))

    def _ends(self, anchors: NDArray[np.int64], many: int, made: np.random.Generator) -> NDArray[np.int64]:
        nodes = np.repeat(anchors[:, None], many, axis=1)
        for _ in range(self.length):
            nodes = self._steps.next(nodes, made.random(nodes.shape))
        return nodes

    def __repr__(self) -> str:
        """The settings."""
        return shown_settings(self, self.graph, length=self.length, walks=self.walks, positives=self.positives)
