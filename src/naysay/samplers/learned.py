"""Samplers with a generator that learns which negatives are rewarded: over candidates, or over paths in a graph.

A generator is any torch function generator(anchors, candidates) -> logits, with the optimiser of its parameters. It
gets tensors of ids on the device of those parameters. `observe` makes one step of the optimiser.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from naysay._lock import Lock
from naysay._slots import Score, corrupted_triples, repeated, score_slots
from naysay._state import Entry, read_state
from naysay.arrays import dtype_for, for_checkpoints, need_torch, to_numpy
from naysay.checks import (
    as_array,
    check_kind,
    check_number,
    check_one_of,
    check_range,
    check_whole,
    first_bad,
    public,
    raise_invalid,
)
from naysay.pools._slots import anchors_of, raise_invalid_times, shortfall
from naysay.pools.corruption import Corruption
from naysay.pools.khop import positive_rows
from naysay.positives import Positives
from naysay.rng import generator_of, key_from, rng_for
from naysay.samplers._choose import (
    Floats,
    Ids,
    candidates_of,
    draw_independent,
    in_use,
    rows_of,
    take,
    wanted_slots,
)
from naysay.samplers._settings import Independent, check_function, check_on_short, check_pool, number, whole
from naysay.types import SIDES, Negatives, Pool, Query, anchor_ids, check_query, positive_ids

__all__ = ["GraphPolicy", "Learned"]

Generator = Callable[[Any, Any], Any]  # generator(anchors (B,), candidates (B, n)) -> (B, n) logits, in torch


# ---- generators, and what an optimiser trains -----------------------------------------------------------


class Trained:
    """What samplers with a generator share: one step of its optimiser, and a state that has its parameters."""

    needs_main_process = True  # its draws depend on what it was taught in the training loop
    _numbers: ClassVar[dict[str, type]] = {"steps": int}  # what `state` has beside the parameters

    optimizer: Any
    seed: int
    _steps: int

    def _start(self, generator: object) -> None:
        """Check what all of them take, and begin at step 0."""
        need_torch()
        check_function("generator", generator, "generator(anchors, candidates)")
        if not hasattr(self.optimizer, "param_groups"):
            raise_invalid("optimizer", "a torch optimiser", type(self.optimizer).__name__)
        check_whole("seed", self.seed, 0)
        self._lock = Lock()
        for name, kind in self._numbers.items():
            setattr(self, f"_{name}", kind())

    def _next_rng(self) -> np.random.Generator:
        """The source of randomness of the next step."""
        rng = rng_for(self.seed, self._steps)
        self._steps += 1
        return rng

    def _climb(self, aim: Any) -> None:
        """One step of the optimiser that raises `aim`."""
        self.optimizer.zero_grad()
        (-aim).backward()
        self.optimizer.step()

    def _parameters(self) -> dict[str, Any]:
        """{"generator_groupG_parameterP": parameter} of the optimiser."""
        groups = enumerate(self.optimizer.param_groups)
        return {f"generator_group{g}_parameter{p}": one for g, group in groups for p, one in enumerate(group["params"])}

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """The generator's parameters, and what is counted. Save the optimiser's moments yourself."""
        with self._lock:
            counted = {name: getattr(self, f"_{name}") for name in self._numbers}
            return {**counted, **{name: to_numpy(value).copy() for name, value in self._parameters().items()}}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned."""
        entries = {name: Entry(whole=kind is int) for name, kind in self._numbers.items()}
        entries |= {name: Entry(tuple(value.shape)) for name, value in self._parameters().items()}
        read = read_state(state, entries)
        torch = need_torch()
        with self._lock, torch.no_grad():
            for name, value in self._parameters().items():
                value.copy_(torch.as_tensor(read[name]))
            for name, kind in self._numbers.items():
                setattr(self, f"_{name}", kind(read[name]))


def _logits(generator: Generator, optimizer: Any, anchors: Ids, candidates: Ids) -> Any:
    """(B, n) the generator's logits of candidates (B, n), or (B, n, 3); a tensor of 64 bits."""
    torch = need_torch()
    device = optimizer.param_groups[0]["params"][0].device
    logits = generator(torch.as_tensor(anchors, device=device), torch.as_tensor(candidates, device=device))
    shape, returned = candidates.shape[:2], tuple(getattr(logits, "shape", ()))
    if returned != shape:
        raise_invalid("generator", f"one that returns shape {shape}", f"shape {returned}")
    return logits.to(dtype_for(logits.device, torch.float64))


def _softmax(logits: Any, eligible: NDArray[np.bool_]) -> tuple[Any, Any]:
    """(B, n) probabilities over what is eligible in each row, and their logarithms; 0 for the rest, and without any."""
    torch = need_torch()
    allowed = torch.as_tensor(eligible, device=logits.device)
    bad = ~torch.isfinite(logits) & allowed
    if bad.any():
        rule = "a function that returns finite logits"
        raise_invalid("generator", rule, first_bad(to_numpy(logits), np.asarray(to_numpy(bad))))
    none = ~allowed.any(dim=1, keepdim=True)
    lowered = logits.masked_fill(~allowed, -torch.inf).masked_fill(none, 0.0)
    chance = torch.softmax(lowered, dim=1) * allowed
    return chance, torch.log_softmax(lowered, dim=1).masked_fill(~allowed, 0.0)


# ---- over candidates ------------------------------------------------------------------------------------


@final
@public
@dataclass(eq=False, repr=False)
class Learned(Trained, Independent):
    """Draw negatives from softmax(generator / temperature) over candidates of a pool; `observe` trains the generator.

    The generator ascends E r = sum_j p_j r_j, r the reward of a candidate by the model in training, such as its score:
    it learns to propose what the model takes for a positive. The baseline "exact" scores all candidates: the gradient
    has no noise. "running" draws `slots` candidates and takes the mean of (r_j - b) d log p_j, with b the mean reward
    of the epoch before; `update` ends an epoch (KBGAN). Both have the same expectation.

    With candidates=None all items that are not known compete, and log_q is exact: log p. With a number it is None, and
    so it is for triples of two sides. All candidates of a triple replace one side, drawn by the pool's chances.

    Wang et al. IRGAN. SIGIR 2017; Cai and Wang. KBGAN: Adversarial Learning for Knowledge Graph Embeddings. NAACL 2018.
    The published codes do not exclude known positives from what the generator proposes. Evidence for such samplers is
    weak: compare with `Dynamic` at equal cost.

    Args:
        pool: Where candidates come from. For candidates=None it has `positives`, or is a `Corruption`.
        generator: generator(anchors (B,), candidates (B, n)) -> (B, n) logits, in torch; for triples
            generator(triples (B, 3), corrupted (B, n, 3)).
        optimizer: A torch optimiser of the generator's parameters.
        reward: A score function as in `Dynamic`.
        candidates: n, or a function of the step; None: all.
        temperature: Of the softmax; above 0, or a function of the step.
        baseline: "exact" or "running".
        slots: Draws per row in `observe`, for "running".
        entropy: The weight of the entropy of p, which is added to the aim.
        seed: Of the draws in `observe`.
        on_short: "pad" or "raise".

    Examples:
        >>> import torch, naysay as ns
        >>> pool = ns.pools.Everything(ns.Positives.from_pairs([0], [0], n_items=6))
        >>> logits = torch.zeros(6, requires_grad=True)
        >>> optimizer = torch.optim.SGD([logits], lr=1.0)
        >>> sampler = Learned(pool, lambda anchors, ids: logits[ids], optimizer, lambda anchors, ids: ids * 1.0)
        >>> for step in range(50):
        ...     sampler.observe(ns.Query([0], step=step))
        >>> bool((sampler.sample(ns.Query([0] * 100), 1, rng=ns.rng_for(0)).ids == 5).mean() > 0.8)
        True
    """

    _numbers: ClassVar[dict[str, type]] = {"steps": int, "mean": float, "sum": float, "count": int}
    restore = Trained.restore  # its own, so that errors name this class
    _mean, _sum, _count = 0.0, 0.0, 0  # the reward of the last epoch, and of this one so far

    pool: Pool
    generator: Generator
    optimizer: Any
    reward: Score
    candidates: Any = None
    temperature: Any = 1.0
    _: KW_ONLY
    baseline: str = "exact"
    slots: int = 1
    entropy: float = 0.0
    seed: int = 0
    on_short: str = "pad"

    def __post_init__(self) -> None:
        check_pool(self.pool)
        self._start(self.generator)
        check_function("reward", self.reward, "reward(anchors, ids)")
        check_one_of("baseline", self.baseline, ("exact", "running"))
        check_on_short(self.on_short)
        check_whole("slots", self.slots, 1)
        check_number("entropy", self.entropy, at_least=0, finite=True)
        self._n_candidates = whole("candidates", self.candidates, optional=True)
        self._temperature = number("temperature", self.temperature, above=0, finite=True)
        self._known: Any = getattr(self.pool, "positives", None)
        if self.candidates is None and not isinstance(self.pool, Corruption):
            self._check_all_compete()
        self._one_sided: dict[int, Pool] = {}
        if isinstance(self.pool, Corruption):
            self._one_sided = {side: self.pool.one_side(SIDES[side]) for side in self.pool.sides}

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives, the first drawn first."""
        check_query(query)
        counts, width = wanted_slots(k, len(query), rng)
        drawn = self._draw(query, rng)
        with self._lock, need_torch().no_grad():
            chance = np.asarray(to_numpy(self._chances(query, drawn)[0]), np.float64)
        order = draw_independent(chance, width, generator_of(key_from(rng)))
        kept = np.take_along_axis(drawn.ids >= 0, order, axis=1)
        answer = take(drawn, (order, kept), counts, width, self.on_short)
        all_compete = self._n_candidates(query.step) is None
        if all_compete and len(self._one_sided) < 2:  # the chance of a side is not known here
            likely = np.where(answer.ids >= 0, np.take_along_axis(chance, order, axis=1), 1.0)
            answer = replace(answer, log_q=np.log(likely))
        return answer.like(query)

    def observe(self, query: Query, negatives: Any = None, *, positive_scores: Any = None, vectors: Any = None) -> None:
        """Train the generator by one step on the query's anchors, with candidates of its own; the rest is not used."""
        check_query(query)
        if not len(query):
            return
        with self._lock, need_torch().enable_grad():
            rng = self._next_rng()
            drawn = self._draw(query, rng)
            chance, log_chance = self._chances(query, drawn)
            if self.baseline == "exact":
                aim = self._expected_reward(query, drawn, chance)
            else:
                aim = self._drawn_reward(query, drawn, chance, log_chance, rng)
            entropy = -(chance * log_chance).sum(dim=1)
            self._climb((aim + self.entropy * entropy).mean())

    def _expected_reward(self, query: Query, drawn: Negatives, chance: Any) -> Any:
        """(B,) E r = sum_j p_j r_j."""
        rewards = need_torch().as_tensor(self._rewards(query, drawn), device=chance.device).to(chance.dtype)
        expected = (chance * rewards).sum(dim=1)
        self._count_rewards(np.asarray(to_numpy(expected)))
        return expected

    def _drawn_reward(
        self, query: Query, drawn: Negatives, chance: Any, log_chance: Any, rng: np.random.Generator
    ) -> Any:
        """(B,) a number whose gradient is that of E r on average: the mean of (r_j - b) log p_j over some draws."""
        torch = need_torch()
        places = draw_independent(np.asarray(to_numpy(chance), np.float64), self.slots, rng)
        ids = np.take_along_axis(drawn.ids, places, axis=1)
        side = None if drawn.side is None else np.take_along_axis(drawn.side, places, axis=1)
        rewards = self._rewards(query, Negatives(ids, side=side))
        advantage = torch.as_tensor(rewards - self._mean, device=chance.device).to(chance.dtype)
        self._count_rewards(rewards.mean(axis=1))
        return (advantage * log_chance.gather(1, torch.as_tensor(places, device=chance.device))).mean(dim=1)

    def update(self) -> None:
        """End an epoch: its mean reward becomes the baseline "running", and `mean_reward`."""
        with self._lock:
            self._mean = self._sum / self._count if self._count else self._mean
            self._sum, self._count = 0.0, 0

    @property
    def mean_reward(self) -> float:
        """The mean reward of the last epoch that ended; 0 before."""
        return self._mean

    def _check_all_compete(self) -> None:
        if self._known is None:
            raise_invalid("candidates", "a number unless the pool has `positives`", None)

    def _count_rewards(self, rewards: NDArray[Any]) -> None:
        self._sum, self._count = self._sum + float(rewards.sum()), self._count + len(rewards)

    def _chances(self, query: Query, drawn: Negatives) -> tuple[Any, Any]:
        """(B, n) the probability of each candidate and its logarithm, with gradients; 0 in empty slots."""
        anchors, ids = anchor_ids(query), np.maximum(drawn.ids, 0)
        candidates = ids if drawn.side is None else corrupted_triples(anchors, ids, drawn.side)
        logits = _logits(self.generator, self.optimizer, anchors, candidates)
        return _softmax(logits / self._temperature(query.step), drawn.ids >= 0)

    def _rewards(self, query: Query, drawn: Negatives) -> Floats:
        """(B, n) the rewards; 0 in empty slots."""
        asked = drawn.like(query)
        rewards = np.asarray(to_numpy(score_slots(self.reward, query, asked.ids, asked.side)), np.float64)
        return np.where(drawn.ids < 0, 0.0, rewards)

    def _draw(self, query: Query, rng: np.random.Generator) -> Negatives:
        """(B, n) candidates in NumPy: some draws, or all items, -1 where one is known."""
        n = self._n_candidates(query.step)
        if isinstance(self.pool, Corruption):
            return self._corrupted(self.pool, query, n, rng)
        if n is not None:
            return candidates_of(self.pool, query, n, rng).numpy()
        self._check_all_compete()
        if query.times is not None:
            raise_invalid_times("With candidates=None all items compete at any time: pass a number.")
        key_from(rng)  # as many keys as with a number
        anchors = anchors_of(query, self._known.n_anchors)
        every = np.broadcast_to(np.arange(self._known.n_items), (len(anchors), self._known.n_items))
        return Negatives(np.where(self._known.contains(anchors, every, relation="any"), -1, every))

    def _corrupted(self, pool: Corruption, query: Query, n: int | None, rng: np.random.Generator) -> Negatives:
        """Replacements of one side of each triple, which is drawn by the pool's chances."""
        if n is not None and len(self._one_sided) == 1:
            return pool.draw(query, n, rng=rng).numpy()
        sides = np.asarray(pool.draw(query, 1, rng=rng).side)  # (B, 1)
        if n is None:
            side = np.repeat(sides, pool.known.n_entities, axis=1)
            every = np.broadcast_to(np.arange(side.shape[1]), side.shape)
            triples = corrupted_triples(anchor_ids(query), every, side).reshape(-1, 3)
            is_known = pool.known.contains(triples).reshape(side.shape)
            return Negatives(np.where(is_known | (side < 0), -1, every), side=side)
        ids = np.full((len(query), n), -1, np.int64)
        for replaced, one_sided in self._one_sided.items():
            rows = np.flatnonzero(sides[:, 0] == replaced)
            if len(rows):
                ids[rows] = one_sided.draw(rows_of(query, rows), n, rng=rng).numpy().ids
        return Negatives(ids, side=np.where(ids < 0, np.int8(-1), sides))


# ---- over paths in a graph ------------------------------------------------------------------------------


@final
@public
@dataclass(eq=False, repr=False)
class GraphPolicy(Trained, Independent):
    """Draw the end of a path of `hops` steps; each step by softmax(generator(node, neighbour)) over some neighbours.

    A path begins at the anchor, or at the row's positive. Only ends that are allowed count: nodes of `items` that are
    neither the anchor nor the positive nor known of the anchor. Steps that lead to no allowed end have probability 0.
    `observe` scores the ends of all paths and makes one step of the optimiser up the exact gradient of the expected
    reward. log_q is None: the neighbours are random where a node has more than `width`. Cost: width^hops logits and, to
    learn, scores per row.

    With stop="return" paths go down a breadth-first tree of the start, of `hops` levels and `width` neighbours of a
    node, and end where they turn back to the node before: G(v) = product of the steps to v * p(parent of v | v).

    Wang et al. Reinforced Negative Sampling over Knowledge Graph for Recommendation. WWW 2020 (KGPolicy: two hops from
    the positive). Wang et al. GraphGAN: Graph Representation Learning with Generative Adversarial Nets. AAAI 2018
    ("return"). Both codes train another function than the one they draw from.

    Args:
        graph: A square Positives; its positive pairs are the edges.
        generator: generator(nodes (m,), neighbours (m, n)) -> (m, n) logits, in torch.
        optimizer: A torch optimiser of the generator's parameters.
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
        >>> import torch, naysay as ns
        >>> path = ns.Positives.from_edges([0, 1, 2], [1, 2, 3])
        >>> logits = torch.zeros(4, requires_grad=True)
        >>> walk = GraphPolicy(
        ...     path, lambda nodes, ids: logits[ids], torch.optim.SGD([logits], 0.1), lambda anchors, ids: ids * 1.0
        ... )
        >>> walk.sample(ns.Query([0, 1]), 2, rng=ns.rng_for(0)).ids.tolist()
        [[2, 2], [3, 3]]
    """

    restore = Trained.restore  # its own, so that errors name this class

    graph: Positives
    generator: Generator
    optimizer: Any
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

    def __post_init__(self) -> None:
        check_kind("graph", self.graph, Positives, "a square Positives")
        n = self.graph.n_items
        if self.graph.n_anchors != n:
            raise_invalid("graph", "square", f"{self.graph.n_anchors} x {n}")
        self._start(self.generator)
        check_function("reward", self.reward, "reward(anchors, ids)")
        check_whole("hops", self.hops, 1, 4)
        check_whole("width", self.width, 1)
        check_one_of("start", self.start, ("anchor", "positive"))
        check_one_of("stop", self.stop, ("fixed", "return"))
        check_on_short(self.on_short)
        self._known = self.graph if self.positives is None else self.positives
        check_kind("positives", self._known, Positives, "a Positives")
        if self._known.n_items != n:
            raise_invalid("positives", f"of {n} items, the nodes of the graph", self._known.n_items)
        allowed = np.ones(n, bool) if self.items is None else as_array("items", to_numpy(self.items))
        if allowed.shape != (n,) or allowed.dtype != bool:
            raise_invalid("items", f"bool of shape ({n},)", f"{allowed.dtype} of shape {allowed.shape}")
        self._allowed, self._edges = allowed, positive_rows(self.graph)

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) ends of paths."""
        check_query(query)
        counts, width = wanted_slots(k, len(query), rng)
        made = generator_of(key_from(rng))
        with self._lock, need_torch().no_grad():
            nodes, ends = self._ends(query, made)
        chance = np.asarray(to_numpy(ends), np.float64)
        ids = np.take_along_axis(nodes, draw_independent(chance, width, made), axis=1)
        ids[(chance.sum(axis=1) <= 0)[:, None] | ~in_use(counts, width)] = -1
        return Negatives(ids, dropped=shortfall(self.on_short, ids, counts)).like(query)

    def observe(self, query: Query, negatives: Any = None, *, positive_scores: Any = None, vectors: Any = None) -> None:
        """Train the generator by one step on paths of the query's anchors; the rest is not used."""
        check_query(query)
        if not len(query):
            return
        torch = need_torch()
        with self._lock, torch.enable_grad():
            nodes, chance = self._ends(query, self._next_rng())
            ends = Negatives(np.where(to_numpy(chance) > 0, nodes, -1))
            given = to_numpy(score_slots(self.reward, query, ends.like(query).ids))
            rewards = np.where(ends.ids >= 0, np.asarray(given, np.float64), 0.0)
            expected = chance * torch.as_tensor(rewards, device=chance.device).to(chance.dtype)
            self._climb(expected.sum(dim=1).mean())

    # Paths are trees, level by level: level h has (B, width^h) nodes, -1 for none. The children of node m of a level
    # are the nodes m * width to (m + 1) * width - 1 of the next one.

    def _ends(self, query: Query, rng: np.random.Generator) -> tuple[Ids, Any]:
        """(B, all nodes) the nodes of all paths, and the probability that a path ends there, with gradients."""
        levels, may_end = self._levels(query, rng)
        steps = self._steps_of(levels, may_end)
        reached = [need_torch().ones_like(steps[0][:, :, 0])]
        for chance, nodes in zip(steps, levels[1:], strict=False):
            reached.append((reached[-1][:, :, None] * chance[:, :, :-1]).reshape(nodes.shape))
        ends = [there * chance[:, :, -1] for there, chance in zip(reached, steps, strict=True)]
        return np.concatenate(levels, axis=1), need_torch().cat(ends, dim=1)

    def _levels(self, query: Query, rng: np.random.Generator) -> tuple[list[Ids], list[NDArray[np.bool_]]]:
        """The nodes of each level, over up to `width` random neighbours of each node, and where a path may end."""
        anchors = anchors_of(query, min(self.graph.n_items, self._known.n_anchors), "nodes")
        own = positive_ids(query) if self.start == "positive" or query.positives is not None else anchors
        check_range("positives", own, self.graph.n_items, "nodes")
        levels = [(own if self.start == "positive" else anchors)[:, None]]
        for _ in range(self.hops):
            nodes = self._neighbours(levels[-1], rng)
            if self.stop == "return":  # without nodes of earlier levels and repeats it is a breadth-first tree
                earlier = np.concatenate(levels, axis=1)
                met_before = repeated(np.concatenate([earlier, nodes], axis=1))[:, earlier.shape[1] :]
                nodes = np.where(met_before, -1, nodes)
            levels.append(nodes)
        may_end = []
        for nodes in levels:
            barred = self._known.contains(anchors, np.maximum(nodes, 0), relation="any") | ~self._allowed[nodes]
            may_end.append(~(barred | (nodes < 0) | (nodes == anchors[:, None]) | (nodes == own[:, None])))
        return levels, may_end

    def _steps_of(self, levels: list[Ids], may_end: list[NDArray[np.bool_]]) -> list[Any]:
        """Of each level (B, m, children + 1): the probability of a step to each child, and of ending here.

        From the last level to the first, because a step must lead to an allowed end.
        """
        torch = need_torch()
        back = self.stop == "return"
        leads_to_end = may_end[-1]
        last = torch.as_tensor(may_end[-1][:, :, None])
        steps: list[Any] = []
        for level in range(len(levels) - 2, -1, -1):
            nodes, width = levels[level], levels[level + 1].shape[1] // levels[level].shape[1]
            children = levels[level + 1].reshape(-1, width)
            if back:  # a path ends by a step to the parent, whose logit counts
                parents = np.repeat(levels[max(level - 1, 0)], width if level else 1, axis=1)
                children = np.concatenate([children, parents.reshape(-1, 1)], axis=1)
            logits = _logits(self.generator, self.optimizer, np.maximum(nodes.ravel(), 0), np.maximum(children, 0))
            if not back:  # only the last level has ends
                logits = torch.nn.functional.pad(logits, (0, 1))
            ends_here = may_end[level].reshape(-1, 1) & back
            eligible = np.concatenate([leads_to_end.reshape(-1, width), ends_here], axis=1)
            steps.insert(0, _softmax(logits, eligible)[0].reshape(*nodes.shape, width + 1))
            leads_to_end = np.asarray(eligible.any(axis=1)).reshape(nodes.shape)
        return [*steps, last.to(steps[0])]

    def _neighbours(self, nodes: Ids, rng: np.random.Generator) -> Ids:
        """(B, m * width) neighbours of (B, m) nodes, different ones for each; all of them where there are few."""
        indptr, indices = self._edges.indptr, self._edges.indices
        shape = (len(nodes), nodes.shape[1] * self.width)
        start, stop = indptr[np.maximum(nodes, 0)], indptr[np.maximum(nodes, 0) + 1]
        degree = np.where(nodes < 0, 0, stop - start)[:, :, None]
        drawn = (rng.random((*nodes.shape, self.width)) * degree).astype(np.int64)
        place = np.where(degree <= self.width, np.arange(self.width), drawn)
        place = np.where(place < degree, place, -1)
        missing = (place < 0) | repeated(place.reshape(-1, self.width)).reshape(place.shape)
        if not len(indices):
            return np.full(shape, -1, np.int64)
        found = indices[np.where(missing, 0, start[:, :, None] + place)]
        return np.where(missing, -1, found).reshape(shape).astype(np.int64)
