"""KHop: the nodes at a given distance from the anchor, the review's hop pool; and what all graph pools share."""

from __future__ import annotations

from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import Rows, frozen, offsets
from naysay.checks import check_kind, check_whole, public, raise_invalid, shown
from naysay.kernels import hops as loops
from naysay.kernels.threads import in_rows
from naysay.pools import _slots
from naysay.positives import POSITIVE, Positives
from naysay.rng import generator_of, key_from
from naysay.triples import Triples
from naysay.types import HEAD, TAIL, Negatives, Query

_ENDS = (HEAD, TAIL)


class Edges(NamedTuple):
    """The edges that a pool follows, as CSR rows, and the pairs that it leaves out."""

    indptr: NDArray[np.int64]
    indices: NDArray[Any]
    known: Positives

    @property
    def n_nodes(self) -> int:
        """The number of nodes, which are both the anchors and the candidates."""
        return len(self.indptr) - 1

    @property
    def shown(self) -> str:
        """The sizes, for the repr of a pool."""
        return f"{self.n_nodes:,} nodes, {len(self.indices):,} edges, {len(self.known):,} known pairs"

    @property
    def rows(self) -> tuple[tuple[NDArray[Any], ...], tuple[NDArray[Any], ...]]:
        """The edges and the known pairs as compiled loops take them."""
        return (self.indptr, self.indices), self.known._rows

    def __reduce__(self) -> tuple[Any, ...]:
        """Make the arrays read-only again after unpickling, like Positives."""
        return _arrived, tuple(self)


def _arrived(indptr: NDArray[np.int64], indices: NDArray[Any], known: Positives) -> Edges:
    return Edges(frozen(indptr), frozen(indices), known)


def positive_rows(known: Positives) -> Rows:
    """The pairs that are positive, without the ignored ones; not copied if there are none of those."""
    if known.relation is None:
        return Rows(known.indptr, known.indices)
    positive = known.relation == POSITIVE  # from_edges puts (v, v) in as ignored
    return Rows(offsets(positive)[known.indptr], known.indices[positive])


def edges_of(graph: Any, positives: Any) -> Edges:
    """The positive pairs of a graph on one set of nodes, and all its pairs with those of `positives` as known."""
    if not isinstance(graph, Positives):
        if not hasattr(graph, "tocsr"):
            raise_invalid("graph", "a Positives or a scipy.sparse matrix", type(graph).__name__)
        graph = Positives.from_scipy(graph)
    nodes = graph.n_items
    if graph.n_anchors != nodes:
        advice = "Make it with Positives.from_edges(sources, targets)."
        raise_invalid("graph", "square, on one set of nodes", f"{graph.n_anchors} x {nodes}", advice)
    if graph.anchor_names != graph.item_names:
        advice = "Encode both ends with one vocabulary and use Positives.from_edges."
        raise_invalid("graph", "square, on one set of nodes", "different names for rows and columns", advice)
    if not 1 <= nodes < np.iinfo(np.int32).max:
        raise_invalid("graph", "of at least one and fewer than 2^31 - 1 nodes", f"{nodes} nodes")
    known = graph
    if positives is not None:
        _slots.check_known(positives)
        if positives.n_anchors > nodes or positives.n_items > nodes:
            got = f"{positives.n_anchors} x {positives.n_items}"
            raise_invalid("positives", f"on the graph's {nodes} nodes", got)
        known = graph.union(positives)
    edges = positive_rows(graph)
    return Edges(frozen(edges.indptr), frozen(edges.indices), known)


def one_anchor(anchor: int, n_nodes: int) -> int:
    """A single anchor, which must be a node of the graph."""
    node = check_whole("anchor", anchor, 0)
    if node >= n_nodes:
        raise_invalid("anchor", f"between 0 and {n_nodes - 1} ({n_nodes} nodes)", node)
    return node


@final
@public
class KHop:
    """Draw uniformly from the nodes at a given distance from the anchor: near enough to be hard, not linked.

    Candidates are {v : low <= distance(anchor, v) <= high}, without the anchor and what is known of it: the graph's
    edges and ignored pairs, and `positives`. So hops=1 alone has no candidates.

    log_q, with m candidates:   independent   -log m        distinct   -log(m - slot)

    Structure-aware negatives (Ahrabian et al. Structure Aware Negative Sampling in Knowledge Graphs. EMNLP 2020) take
    the non-zeros of A^(k-1) + A^k, which is the whole ball, with the node itself and its neighbours.
    KHop(graph, hops=(2, k)) is that ball without them. Where that leaves nothing, the published code draws from all
    nodes; here the row is short, and counted.

    Of `Triples` it replaces the head or the tail, with equal chance and the same side in a whole row, by an entity at
    that distance from the end that is kept. Edges are the triples in both directions, whatever the relation. True
    triples are left out, exactly, and the entity that is kept; a neighbour by another relation is a candidate, so
    hops=(1, k) is the paper's ball. log_q of the first slot contains the chance of the side, log(1/2).

    Cost: a row reads every edge of the nodes nearer than the largest distance, whatever n is; in small-world graphs
    three hops can be most of the graph. Memory: 8 bytes per node and thread, nothing per pair.

    Args:
        graph: A square Positives, as from `Positives.from_edges`, or a square scipy.sparse matrix. Its positive pairs
            are the edges, all of equal weight, followed from anchor to item; its ignored pairs are not edges. Or
            Triples, for queries of triples.
        hops: A distance, or the smallest and the largest: (2, 3); at least 1. Distance is the number of edges on the
            shortest path; nodes without a path are never candidates.
        positives: Further pairs to exclude, on the same nodes; of Triples further Triples, which make no edges.
        distinct: Whether a row has an id at most once (default), or draws are independent.
        on_short: "pad" leaves -1 where nothing is left to draw and counts it in `dropped`; "raise" raises NaysayError.

    Examples:
        >>> import naysay as ns
        >>> path = ns.Positives.from_edges([0, 1, 2, 3], [1, 2, 3, 4])
        >>> KHop(path, hops=2).candidates(2).tolist()
        [0, 4]
    """

    def __init__(
        self,
        graph: Any,
        hops: int | tuple[int, int] = 2,
        positives: Positives | Triples | None = None,
        *,
        distinct: bool = True,
        on_short: str = "pad",
    ) -> None:
        """Get the edges of the graph: O(pairs); no copy if all its pairs are positive."""
        self.hops = _low_and_high(hops)
        self.distinct, self.on_short = _slots.check_settings(distinct, on_short)
        self._triples = None
        if isinstance(graph, Triples):
            self._triples, self._edges = _edges_of_triples(graph, positives)
        else:
            self._edges = edges_of(graph, positives)

    def draw(self, query: Query, n: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, n) negatives for the query's anchors; n is a number, or (B,) numbers."""
        edges = self._edges
        key = key_from(rng)
        anchors, rows, owns, side = self._starts(query, key)
        counts, width = _slots.slot_counts(n, len(anchors))
        ids, log_q = np.empty((len(anchors), width), np.int64), np.empty((len(anchors), width))
        degree = len(edges.indices) / edges.n_nodes
        ball = min(float(len(edges.indices)), degree ** min(self.hops[1], 32))  # roughly the edges that a row reads
        steps = ids.size + int(len(ids) * (4 + ball))
        settings = (
            (key, not self.distinct),
            (anchors, rows, owns),
            counts,
            self._distances(),
            edges.rows,
            (ids, log_q),
        )

        def draw_part(start: int, stop: int) -> None:
            loops.draw_at_distance(start, stop, _scratch(edges.n_nodes), *settings)

        in_rows(draw_part, len(ids), steps)
        dropped = _slots.shortfall(self.on_short, ids, counts)
        if side is None:
            return Negatives(ids, log_q=log_q, dropped=dropped)
        filled = ids >= 0
        shared = slice(None) if not self.distinct else slice(1)  # the other slots of a distinct row have no choice
        log_q[:, shared] -= np.where(filled, np.log(2.0), 0.0)[:, shared]
        sides = np.where(filled, side[:, None], np.int8(-1)).astype(np.int8)
        return Negatives(ids, log_q=log_q, side=sides, dropped=dropped)

    def _starts(self, query: Query, key: np.uint64) -> tuple[Any, Any, Any, NDArray[np.int8] | None]:
        """(B,) each: where searches start, the row of what is known, one more id to leave out, and the side."""
        if self._triples is None:
            anchors = _slots.anchors_of(query, self._edges.n_nodes, "nodes")
            return anchors, anchors, anchors, None
        triples = _slots.triples_of(query, self._triples)
        place = generator_of(key).integers(0, 2, len(triples))
        every = np.arange(len(triples))
        rows = self._triples.index(_ENDS).rows(triples)[every, place]
        ends = triples[:, _ENDS]
        kept, own = (frozen(np.ascontiguousarray(ends[every, at])) for at in (1 - place, place))
        return kept, frozen(np.ascontiguousarray(rows)), own, np.array(_ENDS, np.int8)[place]

    def candidates(self, anchor: int) -> NDArray[np.int64]:
        """All candidates of one anchor, ascending."""
        edges = self._edges
        if self._triples is not None:
            raise_invalid("graph", "a graph of pairs", "Triples", "Draw from it instead.")
        node = one_anchor(anchor, edges.n_nodes)
        scratch = _scratch(edges.n_nodes)
        size = loops.candidates(1, node, node, node, self._distances(), edges.rows, scratch)
        return np.sort(scratch[1][:size]).astype(np.int64)

    def _distances(self) -> tuple[int, int]:
        """The hops, limited to the number of nodes, which is above every distance."""
        return min(self.hops[0], self._edges.n_nodes), min(self.hops[1], self._edges.n_nodes)

    def __repr__(self) -> str:
        return _slots.shown_settings(self, self._edges.shown, hops=self.hops)


def _edges_of_triples(triples: Triples, more: Any) -> tuple[Triples, Edges]:
    """All known triples, and the entities that a training triple links, both ways, with what is known by key."""
    check_kind("positives", more, Triples | None, "a Triples or None, like the graph")
    known = triples if more is None else triples.union(more)
    links = Positives.from_edges(triples.array[:, HEAD], triples.array[:, TAIL], known.n_entities, self_pairs=True)
    return known, Edges(links.indptr, links.indices, known.index(_ENDS).known)


def _low_and_high(hops: Any) -> tuple[int, int]:
    if not isinstance(hops, tuple | list):
        distance = check_whole("hops", hops, 1)
        return distance, distance
    if len(hops) != 2:
        raise_invalid("hops", "a distance or a pair (low, high)", shown(hops))
    low, high = (check_whole("hops", distance, 1) for distance in hops)
    if low > high:
        raise_invalid("hops", "a pair (low, high), in this order", shown(hops))
    return low, high


def _scratch(n_nodes: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The stamps and the queue of one thread; NumPy's zeros take no memory until they are written."""
    return np.zeros(n_nodes, np.int32), np.empty(n_nodes + 1, np.int32)
