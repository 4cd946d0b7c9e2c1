"""GraphPolicy: a policy that walks a graph to a negative, and learns which ways lead to hard ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._lock import Lock
from naysay._slots import Score, check_score, like_query, repeated, score_slots
from naysay._state import Entry
from naysay.arrays import for_checkpoints, to_numpy
from naysay.checks import as_array, check_kind, check_one_of, check_range, check_whole, public, raise_invalid
from naysay.pools._slots import ON_SHORT, anchors_of, shortfall
from naysay.pools.khop import positive_rows
from naysay.positives import Positives
from naysay.rng import generator_of, key_from, rng_for
from naysay.samplers import _policy as policy
from naysay.samplers._candidates import Independent, wanted_slots
from naysay.samplers._generators import Generator, read_within, state_within
from naysay.samplers._graph_paths import Paths, chances_of, only_new
from naysay.types import Negatives, Query, check_query, positive_ids

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]


@final
@public
@dataclass(eq=False, repr=False)
class GraphPolicy(Independent):
    """Draw the end of a path of `hops` steps; each step by softmax(generator(node, neighbour)) over some neighbours.

    A path begins at the anchor, or at the row's positive. Only ends that are allowed count: nodes of `items` that are
    neither the anchor nor the positive nor known of the anchor. Steps that lead to no allowed end have probability 0,
    so that nothing is replaced afterwards. `observe` scores the ends of all paths over `width` neighbours a step and
    makes one step of the generator, with the exact gradient of the expected reward E: for node x, reached with
    probability pi(x), and its child y, pi(x) p(y | x) (E[r | y] - E[r | x]).

    log_q is None: the neighbours are random where a node has more than `width`.

    Wang et al. Reinforced Negative Sampling over Knowledge Graph for Recommendation. WWW 2020 (KGPolicy: two hops,
    item, entity, item, from the positive; its policy also sees the user). Its code takes the highest action and trains
    as if it were drawn, and replaces ends that are no items while it keeps their probability.

    With stop="return" paths go down a breadth-first tree of the start, and end where they turn back to the node before:
    G(v) = product of the steps to v * p(parent of v | v). Wang et al. GraphGAN: Graph Representation Learning with
    Generative Adversarial Nets. AAAI 2018. There the tree is that of the whole graph, here it has `hops` levels and
    `width` neighbours of a node. Its code trains another function than the one it draws from.

    Cost: width^hops logits and, to learn, scores per row.

    Args:
        graph: A square Positives; its positive pairs are the edges.
        generator: As in `Learned`; "anchors" are the nodes of a path, candidates their neighbours.
        reward: reward(anchors (B,), ids (B, n)) -> (B, n), such as the model's score.
        hops: Steps of a path, or with stop="return" levels of the tree, from 1 to 4.
        positives: What is known of the anchors; None: the graph's own pairs.
        width: Neighbours of a node that compete, at most.
        start: "anchor" or "positive".
        stop: "fixed", after `hops` steps, or "return".
        items: (n_nodes,) bool, the nodes that may be negatives; None: all.
        seed: Of the draws in `observe`.
        on_short: "pad" or "raise", if no path leads to an allowed end.

    Examples:
        >>> import naysay as ns
        >>> path = ns.Positives.from_edges([0, 1, 2], [1, 2, 3])
        >>> walk = GraphPolicy(path, ns.samplers.Factors(4, 4, 2), lambda anchors, ids: ids * 1.0)
        >>> walk.sample(ns.Query([0, 1]), 2, rng=ns.rng_for(0)).ids.tolist()
        [[2, 2], [3, 3]]
    """

    needs_main_process = True  # its draws depend on what it was taught in the training loop

    graph: Positives
    generator: Generator
    reward: Score
    hops: int = 2
    _: KW_ONLY
    positives: Positives | None = None
    width: int = 8
    start: str = "anchor"
    stop: str = "fixed"
    items: Any = None
    seed: int = 0
    on_short: str = "pad"
    _lock: Lock = field(init=False)

    def __post_init__(self) -> None:
        check_kind("graph", self.graph, Positives, "a square Positives")
        n = self.graph.n_items
        if self.graph.n_anchors != n:
            raise_invalid("graph", "square", f"{self.graph.n_anchors} x {n}")
        check_score(self.reward)
        check_whole("hops", self.hops, 1, 4)
        check_whole("width", self.width, 1)
        check_whole("seed", self.seed, 0)
        check_one_of("start", self.start, ("anchor", "positive"))
        check_one_of("stop", self.stop, ("fixed", "return"))
        check_one_of("on_short", self.on_short, ON_SHORT)
        self._known = self.graph if self.positives is None else self.positives
        check_kind("positives", self._known, Positives, "a Positives")
        if self._known.n_items != n:
            raise_invalid("positives", f"of {n} items, the nodes of the graph", self._known.n_items)
        allowed = np.ones(n, bool) if self.items is None else as_array("items", to_numpy(self.items))
        if allowed.shape != (n,) or allowed.dtype != bool:
            raise_invalid("items", f"bool of shape ({n},)", f"{allowed.dtype} of shape {allowed.shape}")
        self._allowed, self._rows = allowed, positive_rows(self.graph)
        self._lock = Lock()
        self._steps = 0

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) ends of paths."""
        check_query(query)
        counts, width = wanted_slots(k, len(query), rng)
        made = generator_of(key_from(rng))
        with self._lock:
            paths = self._paths(query, made)
        nodes, chance = paths.ends()
        ids = np.take_along_axis(nodes, policy.draw_independent(chance, width, made), axis=1)
        ids[(chance.sum(axis=1) <= 0)[:, None] | (np.arange(width) >= counts[:, None])] = -1
        return Negatives(ids, dropped=shortfall(self.on_short, ids, counts)).like(query)

    def observe(self, query: Query, negatives: Any = None, *, positive_scores: Any = None, vectors: Any = None) -> None:
        """Train the generator by one step on paths of the query's anchors.

        Args:
            query: The anchors; with positives if paths begin there.
            negatives: Not used: all paths over the drawn neighbours are scored.
            positive_scores: Not used.
            vectors: Not used.
        """
        check_query(query)
        if not len(query):
            return
        with self._lock:
            rng, self._steps = rng_for(self.seed, self._steps), self._steps + 1
            paths = self._paths(query, rng)
            nodes, chance = paths.ends()
            ends = np.where(chance > 0, nodes, -1)
            given = score_slots(self.reward, query, like_query(ends, query))
            reward = np.where(ends >= 0, np.asarray(to_numpy(given), np.float64), 0.0)
            for parents, options, by_logit in list(paths.gradients(reward)):
                used = parents >= 0
                if used.any():
                    self.generator.ascend(parents[used], options[used], by_logit[used] / len(query))

    def _paths(self, query: Query, rng: np.random.Generator) -> Paths:
        """All paths over up to `width` random neighbours of each node."""
        back = self.stop == "return"
        anchors = anchors_of(query, min(self.graph.n_items, self._known.n_anchors), "nodes")
        own = positive_ids(query) if self.start == "positive" or query.positives is not None else anchors
        check_range("positives", own, self.graph.n_items, "nodes")
        nodes = [(own if self.start == "positive" else anchors)[:, None]]
        for _ in range(self.hops):
            near = self._neighbours(nodes[-1], rng)
            nodes.append(only_new(nodes, near) if back else near)
        allowed = []
        for level in nodes:
            barred = self._known.contains(anchors, np.maximum(level, 0), relation="any") | ~self._allowed[level]
            allowed.append(~(barred | (level < 0) | (level == anchors[:, None]) | (level == own[:, None])))
        return chances_of(nodes, allowed, self.generator, back=back)

    def _neighbours(self, nodes: Ids, rng: np.random.Generator) -> Ids:
        """(B, m * width) neighbours of (B, m) nodes, different ones for each; all of them where there are few."""
        start, stop = self._rows.indptr[np.maximum(nodes, 0)], self._rows.indptr[np.maximum(nodes, 0) + 1]
        degree = np.where(nodes < 0, 0, stop - start)[:, :, None]
        drawn = (rng.random((*nodes.shape, self.width)) * degree).astype(np.int64)
        place = np.where(degree <= self.width, np.arange(self.width), drawn)
        place = np.where(place < degree, place, -1)
        flat = place.reshape(-1, self.width)
        place = np.where(repeated(flat).reshape(place.shape), -1, place)
        if not len(self._rows.indices):
            return np.full((len(nodes), nodes.shape[1] * self.width), -1, np.int64)
        found = self._rows.indices[np.where(place < 0, 0, start[:, :, None] + place)]
        return np.where(place < 0, -1, found).reshape(len(nodes), nodes.shape[1] * self.width).astype(np.int64)

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """All that the next sample and observe depend on, apart from the settings."""
        with self._lock:
            return {"steps": self._steps, **state_within(self.generator)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned."""
        read, theirs = read_within(state, {"steps": Entry(whole=True)})
        with self._lock:
            self.generator.restore(theirs)
            self._steps = int(read["steps"])
