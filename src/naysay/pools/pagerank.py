"""PageRank: a window of the nodes ranked by personalised PageRank from the anchor. PinSage's hard negatives."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import check_number, check_whole, public, raise_invalid, shown
from naysay.kernels import pagerank as loops
from naysay.kernels.threads import in_rows
from naysay.pools._slots import asked, check_settings, shortfall, shown_settings
from naysay.pools.khop import edges_of, one_anchor
from naysay.positives import Positives
from naysay.types import Negatives, Query


@final
@public
class PageRank:
    """Draw uniformly from a window of ranks by personalised PageRank: related to the anchor, but not closely.

    pagerank = restart * e_anchor + (1 - restart) * pagerank P, where P steps to a uniform neighbour and, from a node
    without outgoing edges, back to the anchor. The anchor and what is known of it (the graph's edges and ignored pairs,
    and `positives`) are left out; the rest is ranked by score descending, id ascending. A node that the push never
    reached has no rank; a window that goes beyond the last rank ends there.

    Scores come from forward push (Andersen, Chung, Lang. Local Graph Partitioning using PageRank Vectors. FOCS 2006),
    plus restart * the residual of the node, which brings them closer. They are never above the true value, except for
    rounding. With d(v) the number of edges that leave v, at least 1:
        undirected graph   0 <= pagerank(v) - score(v) <= tolerance * d(v) for each v, whose score is 0 if not reached
        any graph          sum over all v of pagerank(v) - score(v) <= tolerance * sum of d(v) over the reached v

    log_q is exact given the ranking, with m nodes in the window:   independent   -log m      distinct   -log(m - slot)

    PinSage (Ying et al. Graph Convolutional Neural Networks for Web-Scale Recommender Systems. KDD 2018) takes ranks
    2000 to 5000, estimated by counting visits of random walks, and e - 1 such negatives per item in epoch e, with
    uniform ones.

    Cost: at most 1 / (restart * tolerance) edge steps per row plus the anchor's degree, whatever the size of the graph,
    and a selection that is linear in the reached nodes on average. Memory: at most 36 bytes per node and thread, used
    only for reached nodes, nothing per pair.

    Args:
        graph: A square Positives, as from `Positives.from_edges`, or a square scipy.sparse matrix. Its positive pairs
            are the edges, all of equal weight, followed from anchor to item; its ignored pairs are not edges.
        ranks: (first, end): whole numbers are ranks counted from 0, `end` not included; floats in [0, 1] are shares
            of the row's m ranked nodes: floor(first * m) to floor(end * m), for graphs too small for ranks.
        restart: The probability at each step that the walk returns to the anchor; from 1e-6 to below 1.
        tolerance: The accuracy of the scores, see above; from 1e-16 to below 1.
        positives: Further pairs to exclude, on the same nodes.
        distinct: Whether a row has an id at most once (default), or draws are independent.
        on_short: "pad" leaves -1 where nothing is left to draw and counts it in `dropped`; "raise" raises NaysayError.

    Examples:
        >>> import naysay as ns
        >>> path = ns.Positives.from_edges([0, 1, 2, 3], [1, 2, 3, 4])
        >>> PageRank(path, ranks=(0, 2)).candidates(0).tolist()
        [2, 3]
    """

    def __init__(
        self,
        graph: Any,
        ranks: tuple[int, int] | tuple[float, float],
        restart: float = 0.15,
        tolerance: float = 1e-6,
        positives: Positives | None = None,
        *,
        distinct: bool = True,
        on_short: str = "pad",
    ) -> None:
        """Get the edges of the graph: O(pairs); no copy if all its pairs are positive."""
        self.ranks = _window(ranks)
        # Below these limits rounding can undo what a push settles, and it may never end.
        self.restart = check_number("restart", restart, at_least=1e-6, below=1)
        self.tolerance = check_number("tolerance", tolerance, at_least=1e-16, below=1)
        self.distinct, self.on_short = check_settings(distinct, on_short)
        self._edges = edges_of(graph, positives)

    def draw(self, query: Query, n: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, n) negatives for the query's anchors; n is a number, or (B,) numbers."""
        edges = self._edges
        anchors, counts, width, key = asked(query, n, rng, edges.n_nodes, "nodes")
        ids, log_q = np.empty((len(anchors), width), np.int64), np.empty((len(anchors), width))
        pushed = min(len(edges.indices) + 1.0, 1.0 / (self.restart * self.tolerance))
        first, end = (float(min(rank, edges.n_nodes)) for rank in self.ranks)
        window = (first, end, isinstance(self.ranks[0], float))
        how, accuracy = (key, not self.distinct), (self.restart, self.tolerance)
        settings = (how, (anchors, counts), accuracy, window, edges.rows, (ids, log_q))

        def draw_part(start: int, stop: int) -> None:
            loops.draw_ranks(start, stop, _scratch(edges.n_nodes), *settings)

        in_rows(draw_part, len(ids), ids.size + int(len(ids) * pushed))
        return Negatives(ids, log_q=log_q, dropped=shortfall(self.on_short, ids, counts))

    def scores(self, anchor: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """(ids, scores) of every node that the push reached, best first, with the anchor and known nodes."""
        edges = self._edges
        node = one_anchor(anchor, edges.n_nodes)
        scratch = _scratch(edges.n_nodes)
        reached = loops.pagerank(node, self.restart, self.tolerance, edges.indptr, edges.indices, scratch)
        ids = scratch[0][:reached].astype(np.int64)
        scores = scratch[2][ids]
        best_first = np.lexsort((ids, -scores))
        return ids[best_first], scores[best_first]

    def candidates(self, anchor: int) -> NDArray[np.int64]:
        """All candidates of one anchor: the ids of the window, by rank."""
        ids = self.scores(anchor)[0]
        ranked = ids[(ids != anchor) & ~self._edges.known.contains(np.full(len(ids), anchor), ids, relation="any")]
        first, end = self.ranks
        if isinstance(first, float):
            first, end = int(first * len(ranked)), int(end * len(ranked))
        return np.asarray(ranked[int(first) : int(end)])

    def __repr__(self) -> str:
        settings = {"ranks": self.ranks, "restart": self.restart, "tolerance": self.tolerance}
        return shown_settings(self, self._edges.shown, **settings)


def _window(ranks: Any) -> tuple[int, int] | tuple[float, float]:
    if not isinstance(ranks, tuple | list) or len(ranks) != 2:
        raise_invalid("ranks", "a pair (first, end)", shown(ranks))
    first, end = ranks
    shares = [isinstance(rank, float | np.floating) for rank in ranks]
    if any(shares) and not all(shares):
        advice = "Write 0.5, 1.0 for shares and 2000, 5000 for ranks."
        raise_invalid("ranks", "two whole numbers or two floats", shown(ranks), advice)
    if all(shares):
        if not 0.0 <= first < end <= 1.0:
            raise_invalid("ranks", "a pair with 0 <= first < end <= 1 if they are shares", shown(ranks))
        return float(first), float(end)
    first, end = (check_whole("ranks", rank, 0) for rank in ranks)
    if first >= end:
        raise_invalid("ranks", "a pair (first, end) with first below end", shown(ranks))
    return first, end


def _scratch(n_nodes: int) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64], NDArray[np.float64]]:
    """One thread's nodes, queue, scores and residuals; NumPy's zeros take no memory until they are written."""
    ring = 1 << n_nodes.bit_length()
    return np.empty(n_nodes, np.int32), np.empty(ring, np.int32), np.zeros(n_nodes), np.zeros(2 * n_nodes)
