"""Walks: the ends of short random walks from the anchor. Near and well-connected nodes come most often."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from naysay.checks import public
from naysay.kernels import walks as loops
from naysay.kernels.threads import in_rows
from naysay.pools._slots import anchors_of, asked, check_count, check_settings, shortfall, shown_settings
from naysay.pools.khop import edges_of
from naysay.positives import Positives
from naysay.rng import key_from
from naysay.types import Negatives, Query


@final
@public
class Walks:
    """Draw the ends of random walks of `length` steps from the anchor, a new walk for each draw.

    A walk ends at v with probability `[(D^-1 A)^length](anchor, v)`. An end that is the anchor, known of it (the
    graph's edges and ignored pairs, and `positives`), or already in a distinct row, is rejected, and the next walk
    begins. A walk that reaches a node without outgoing edges before its last step has no end; an anchor without edges
    gives an empty row.

    log_q is None: the probabilities are those of the walks, renormalised over what is not rejected, and that sum is not
    computed.

    RW-SANS (Ahrabian et al. Structure Aware Negative Sampling in Knowledge Graphs. EMNLP 2020) approximates the ball of
    radius `length` by such ends. Its published code begins each walk where the one before ended: one long walk that
    visits nodes by degree. Here, as in the paper, every walk begins at the anchor.

    Cost: `length` random reads per walk, at most walks * length per row; no memory but the graph.

    Args:
        graph: A square Positives, as from `Positives.from_edges`, or a square scipy.sparse matrix. Its positive pairs
            are the edges, all of equal weight, followed from anchor to item; its ignored pairs are not edges.
        length: Steps of a walk, each to a uniform neighbour; at least 1.
        walks: The maximum number of walks per row; a row that is not full by then is short.
        positives: Further pairs to exclude, on the same nodes.
        distinct: Whether a row has an id at most once (default), or draws are independent.
        on_short: "pad" leaves -1 where walks ran out and counts it in `dropped`; "raise" raises NaysayError.

    Examples:
        >>> import naysay as ns
        >>> path = ns.Positives.from_edges([0, 1, 2, 3], [1, 2, 3, 4])
        >>> sorted(Walks(path, length=2).draw(ns.Query([2]), 2, rng=ns.rng_for(0)).ids[0].tolist())
        [0, 4]
    """

    def __init__(
        self,
        graph: Any,
        length: int = 2,
        walks: int = 1000,
        positives: Positives | None = None,
        *,
        distinct: bool = True,
        on_short: str = "pad",
    ) -> None:
        """Get the edges of the graph: O(pairs); no copy if all its pairs are positive."""
        # With both below 2^31 every step of a row has its own random number.
        self.length, self.walks = check_count("length", length), check_count("walks", walks)
        self.distinct, self.on_short = check_settings(distinct, on_short)
        self._edges = edges_of(graph, positives)

    def draw(self, query: Query, n: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, n) negatives for the query's anchors; n is a number, or (B,) numbers."""
        edges = self._edges
        anchors, counts, width, key = asked(query, n, rng, edges.n_nodes, "nodes")
        ids = np.empty((len(anchors), width), np.int64)
        settings = ((key, not self.distinct), (anchors, counts), self.length, self.walks)
        steps = 2 * ids.size * (self.length + 2)
        in_rows(loops.draw_walk_ends, len(ids), steps, *settings, edges.rows, ids)
        return Negatives(ids, dropped=shortfall(self.on_short, ids, counts))

    def endpoints(self, anchors: ArrayLike, count: int, *, rng: np.random.Generator) -> NDArray[np.int64]:
        """(B, count) ends of walks, without rejection; -1 for a walk without an end.

        With an equal rng, `draw` takes the same walks in the same order.
        """
        nodes = anchors_of(Query(anchors), self._edges.n_nodes, "nodes")
        width = check_count("count", count, 0)
        key = key_from(rng)
        ends = np.empty((len(nodes), width), np.int64)
        settings = (key, nodes, self.length, self._edges.indptr, self._edges.indices)
        in_rows(loops.walk_ends, len(nodes), ends.size * (self.length + 1), *settings, ends)
        return ends

    def __repr__(self) -> str:
        return shown_settings(self, self._edges.shown, length=self.length, walks=self.walks)
