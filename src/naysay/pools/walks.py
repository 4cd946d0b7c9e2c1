"""Walks: the ends of short random walks from the anchor. Near and well-connected nodes come most often."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from naysay._rows import frozen, refrozen
from naysay._slots import repeated
from naysay.checks import as_floats, check_all, check_bool, check_kind, check_number, public, raise_invalid
from naysay.kernels import random
from naysay.kernels.compile import in_python
from naysay.pools._slots import anchors_of, asked, check_count, check_settings, shortfall, shown_settings
from naysay.pools.khop import edges_of, positive_rows
from naysay.positives import Positives
from naysay.rng import key_from
from naysay.types import Negatives, Query, positive_ids

Ids = NDArray[np.int64]
Bits = NDArray[np.uint64]
_mixed, _below = in_python(random.mixed), in_python(random.below)
_BITS_BEYOND_A_DOUBLE = np.uint64(11)
_ROUND = 4  # walks for each slot before it is looked at how many rows are full
# A step of a walk with `stop` uses a number to stop, one to step, and one to jump from a node without edges.
_NUMBERS_OF_A_STEP = 3


@final
@public
class Walks:
    """Draw the ends of random walks of `length` steps from the anchor, a new walk for each draw.

    A walk ends at v with probability `[P^length](anchor, v)`, P = D^-1 A. An end that is the anchor, known of it, or
    already in a distinct row, is rejected, and the next walk begins. A walk that reaches a node without edges before
    its last step has no end.

    With `stop` a walk stops at each node with that probability, the anchor included; a node without edges leads to any
    node, and so does the last step. With `items` one item of the node where a walk ends is drawn, uniformly.

    log_q is None: the total probability of what is not rejected is not computed. See the page on pools for the
    papers: RW-SANS (the default), GNEG (`weights`, exclude_edges=False), SamWalker (`stop` and `items`).

    Cost: `length` random reads per walk, with weights `length` binary searches; 8 bytes per weighted edge.

    Args:
        graph: A square Positives, as from `Positives.from_edges`, or a square scipy.sparse matrix. Its positive pairs
            are the edges, followed from anchor to item; its ignored pairs are not edges.
        length: Steps of a walk, at least 1.
        walks: The maximum number of walks per row; a row that is not full by then is short.
        positives: Further pairs to exclude, on the same nodes; with `items` of nodes and items.
        weights: (edges,) at least 0, by anchor, then by item: how often a step follows each edge. None: all equal.
        stop: The probability to stop at a node, above 0 and at most 1; None: after `length` steps.
        items: A Positives of nodes and items: draw an item of the last node. Its pairs are excluded, and edges are not.
        exclude_edges: Whether the graph's pairs are known, as in a graph of positives. If not, the anchor's neighbours
            are candidates, but not the row's own positive.
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
        weights: ArrayLike | None = None,
        stop: float | None = None,
        items: Positives | None = None,
        exclude_edges: bool = True,
        distinct: bool = True,
        on_short: str = "pad",
    ) -> None:
        """Get the edges of the graph, and add up their weights: O(pairs)."""
        # With both below 2^31 every step of a row has its own random number.
        self.length, self.walks = check_count("length", length), check_count("walks", walks)
        self.stop = None if stop is None else check_number("stop", stop, above=0, at_most=1)
        self.exclude_edges = check_bool("exclude_edges", exclude_edges)
        self.distinct, self.on_short = check_settings(distinct, on_short)
        self._edges = edges_of(graph, positives if items is None else None)
        self.items, self.positives = items, positives
        if items is not None:
            self._known: Positives | None = _with_items(items, positives, self._edges.n_nodes)
            rows = positive_rows(items)
            self._item_rows = frozen(rows.indptr), frozen(rows.indices)
        else:
            self._known = self._edges.known if exclude_edges else positives
        self._sums = None if weights is None else _running_sums(weights, len(self._edges.indices))

    def draw(self, query: Query, n: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, n) negatives for the query's anchors; n is a number, or (B,) numbers."""
        anchors, counts, width, key = asked(query, n, rng, self._edges.n_nodes, "nodes")
        own = None
        if self.items is None and not self.exclude_edges and query.positives is not None:
            own = positive_ids(query)
        states = _row_states(key, len(anchors))
        ids = np.full((len(anchors), width), -1, np.int64)
        # Without `stop` a walk from an anchor without edges has no end.
        leads_on = np.diff(self._edges.indptr)[anchors] > 0
        pending = np.flatnonzero((counts > 0) & (leads_on | (self.stop is not None)))
        n_walked = 0
        while len(pending) and n_walked < self.walks:
            n_walks = min(_ROUND * width, self.walks - n_walked)
            proposals = self._proposals(states[pending], anchors[pending], np.arange(n_walked, n_walked + n_walks))
            proposals[self._forbidden(anchors[pending], None if own is None else own[pending], proposals)] = -1
            slots = np.concatenate([ids[pending], proposals], axis=1)
            if self.distinct:
                slots[repeated(slots)] = -1
            filled_first = np.argsort(slots < 0, axis=1, kind="stable")
            ids[pending] = np.take_along_axis(slots, filled_first, axis=1)[:, :width]
            pending = pending[np.count_nonzero(ids[pending] >= 0, axis=1) < counts[pending]]
            n_walked += n_walks
        ids[np.arange(width) >= counts[:, None]] = -1
        return Negatives(ids, dropped=shortfall(self.on_short, ids, counts))

    def endpoints(self, anchors: ArrayLike, count: int, *, rng: np.random.Generator) -> Ids:
        """(B, count) the nodes where walks end, without rejection; -1 for a walk without an end.

        With an equal rng, `draw` takes the same walks in the same order.
        """
        nodes = anchors_of(Query(anchors), self._edges.n_nodes, "nodes")
        walks = np.arange(check_count("count", count, 0))
        return self._ends(_row_states(key_from(rng), len(nodes)), nodes, walks)

    def _proposals(self, states: Bits, anchors: Ids, walks: Ids) -> Ids:
        """(B, many) what walks propose: the nodes where they end, or an item of those; -1 for nothing."""
        nodes = self._ends(states, anchors, walks)
        if self.items is None:
            return nodes
        indptr, indices = self._item_rows
        bits = _numbers(states[:, None], (walks + 1) * self._numbers_of_a_walk - 1)
        return _step(nodes, bits, indptr, indices, None)

    @property
    def _numbers_of_a_walk(self) -> int:
        if self.stop is None and self.items is None:
            return self.length
        return _NUMBERS_OF_A_STEP * self.length + 2  # the last two: the node of the last step, and the item

    def _ends(self, states: Bits, anchors: Ids, walks: Ids) -> Ids:
        """(B, many) where walks end, -1 for one without an end."""
        indptr, indices = self._edges.indptr, self._edges.indices
        nodes = np.repeat(anchors[:, None], len(walks), axis=1)
        begin, n_nodes = walks * self._numbers_of_a_walk, self._edges.n_nodes
        if self.stop is None:
            for step in range(self.length):
                nodes = _step(nodes, _numbers(states[:, None], begin + step), indptr, indices, self._sums)
            return nodes
        walking = np.ones(nodes.shape, np.bool_)
        for step in range(self.length):
            to_stop, to_step, to_jump = (
                _numbers(states[:, None], begin + _NUMBERS_OF_A_STEP * step + use) for use in range(_NUMBERS_OF_A_STEP)
            )
            walking &= _fractions(to_stop) >= self.stop
            after = _step(nodes, to_step, indptr, indices, self._sums)
            after = np.where(after < 0, _below(to_jump, n_nodes), after)
            nodes = np.where(walking, after, nodes)
        anywhere = _below(_numbers(states[:, None], begin + self._numbers_of_a_walk - 2), n_nodes)
        return np.where(walking, anywhere, nodes)

    def _forbidden(self, anchors: Ids, own: Ids | None, ids: Ids) -> NDArray[np.bool_]:
        """(B, many) whether a row may not use an id."""
        forbidden = ids < 0
        if self.items is None:
            forbidden |= ids == anchors[:, None]
        if own is not None:
            forbidden |= ids == own[:, None]
        if self._known is not None:
            known = self._known
            # Nodes past the last of smaller positives are not known.
            inside = ~forbidden & (anchors[:, None] < known.n_anchors) & (ids < known.n_items)
            rows, slots = np.nonzero(inside)
            forbidden[rows, slots] = known.contains(anchors[rows], ids[rows, slots], relation="any")
        return forbidden

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(refrozen(state))

    def __repr__(self) -> str:
        settings: dict[str, object] = {"length": self.length, "walks": self.walks}
        if self.stop is not None:
            settings["stop"] = self.stop
        if self.items is not None:
            settings["items"] = self.items
        if self._sums is not None:
            settings["weights"] = "given"
        return shown_settings(self, self._edges.shown, **settings, exclude_edges=self.exclude_edges)


# ---- random numbers: those of `kernels.random`, for arrays --------------------------------------------------------


def _row_states(key: np.uint64, n_rows: int) -> Bits:
    """Where the numbers of each row start."""
    rows = np.arange(n_rows, dtype=np.uint64)
    return np.asarray(_mixed(key ^ _mixed(rows + random.GOLDEN)))


def _numbers(states: Bits, slots: Ids) -> Bits:
    """The first random bits of slots."""
    return np.asarray(_mixed(states + slots.astype(np.uint64) * random.GOLDEN))


def _fractions(bits: Bits) -> NDArray[np.float64]:
    """Uniform on [0, 1)."""
    return (bits >> _BITS_BEYOND_A_DOUBLE).astype(np.float64) * 2.0**-53


# ---- steps and edges ----------------------------------------------------------------------------------------------


def _step(nodes: Ids, bits: Bits, indptr: Ids, indices: NDArray[Any], sums: NDArray[np.float64] | None) -> Ids:
    """One step from each node along an edge; -1 from -1 and from a node without edges of some weight."""
    starts, stops = indptr[np.maximum(nodes, 0)], indptr[np.maximum(nodes, 0) + 1]
    stuck = (nodes < 0) | (starts == stops)
    if sums is None:
        places = starts + _below(bits, np.where(stuck, 1, stops - starts))
    else:
        low, high = sums[starts], sums[stops]
        stuck |= high <= low
        places = np.searchsorted(sums, low + _fractions(bits) * (high - low), side="right") - 1
        places = np.clip(places, starts, np.maximum(stops - 1, starts))  # rounding may lead past the last edge
    after = np.full(nodes.shape, -1, np.int64)
    after[~stuck] = indices[places[~stuck]]
    return after


def _running_sums(weights: ArrayLike, n_edges: int) -> NDArray[np.float64]:
    """(edges + 1,) the sum of the weights before each edge."""
    given = as_floats("weights", weights)
    if given.shape != (n_edges,):
        raise_invalid("weights", f"of shape ({n_edges},), one for each edge", f"shape {given.shape}")
    check_all("weights", given, np.isfinite(given) & (given >= 0), "finite and at least 0")
    return frozen(np.concatenate([[0.0], np.cumsum(given)]))


def _with_items(items: Positives, positives: Positives | None, n_nodes: int) -> Positives:
    """The pairs of nodes and items to exclude."""
    check_kind("items", items, Positives, "a Positives of nodes and items")
    if items.n_anchors != n_nodes:
        raise_invalid("items", f"of the {n_nodes} nodes of the graph", f"{items.n_anchors} anchors")
    check_kind("positives", positives, Positives | None, "a Positives or None")
    return items if positives is None else items.union(positives)


@public
def consumption_ties(consumed: Positives) -> tuple[Positives, NDArray[np.float64]]:
    """Ties between users who share an item, and their weights: how a step user -> item -> user goes.

    The weight of (u, v) is sum over shared items i of 1 / (|I_u| |U_i|), both uniform; oneself is left out. Wang et al.
    SamWalker++. TKDE 2021 learns a weight for each interaction, and adds steps over latent communities: not here.

    Args:
        consumed: A Positives of users and items; ignored pairs are left out.

    Returns:
        The ties, and (ties,) their weights, for `Walks(ties, weights=weights, stop=0.1, items=consumed)`. Cost: the
        sum of squared item counts.

    Raises:
        NaysayError: If `consumed` is not a Positives.

    Examples:
        >>> import naysay as ns
        >>> ties, weights = consumption_ties(ns.Positives.from_pairs([0, 1, 1, 2], [0, 0, 1, 1], 3, 2))
        >>> [part.tolist() for part in ties.pairs()], weights.tolist()
        ([[0, 1, 1, 2], [1, 0, 2, 1]], [0.5, 0.25, 0.25, 0.5])
    """
    from scipy.sparse import csr_array

    check_kind("consumed", consumed, Positives, "a Positives")
    rows = positive_rows(consumed)
    shape = (consumed.n_anchors, consumed.n_items)
    has = csr_array((np.ones(len(rows.indices)), rows.indices, rows.indptr), shape=shape)
    to_items = has / np.maximum(has.sum(axis=1), 1.0)[:, None]
    to_users = has / np.maximum(has.sum(axis=0), 1.0)[None, :]
    ties = csr_array(to_items @ to_users.T)
    ties.setdiag(0.0)
    ties.eliminate_zeros()
    ties.sort_indices()
    n = consumed.n_anchors
    users = np.repeat(np.arange(n), np.diff(ties.indptr))
    return Positives.from_pairs(users, ties.indices, n, n), np.asarray(ties.data)
