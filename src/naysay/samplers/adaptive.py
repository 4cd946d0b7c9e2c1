"""Samplers that draw from all items by the model, without scoring all of them: by ranks of factors, or by a chain.

Draws are independent, so that an item may come twice. log_q is None.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from naysay._lock import Lock
from naysay._slots import Score, check_score, like_query, score_slots
from naysay._state import Entry, read_state
from naysay.arrays import for_checkpoints, to_numpy, without_gradients
from naysay.checks import (
    as_array,
    check_all,
    check_kind,
    check_number,
    check_one_of,
    check_range,
    check_whole,
    first_bad,
    public,
    raise_invalid,
)
from naysay.pools._slots import anchors_of, shortfall
from naysay.pools.everything import Everything
from naysay.positives import Positives
from naysay.rng import generator_of, key_from
from naysay.samplers._choose import Floats, Ids, in_use, wanted_slots
from naysay.samplers._settings import Embed, Independent, check_function, check_on_short, number
from naysay.text import described
from naysay.types import MadeOf, Negatives, Query, anchor_ids, check_query

__all__ = ["AdaptiveOversampling", "MarkovChain"]

_REDRAWS = 8  # of a slot that hit something known, before it is drawn exactly
_NUMBERS_AT_ONCE = 1 << 21  # held by an exact draw: 16 MB


# ---- by ranks of factors --------------------------------------------------------------------------------


@final
@public
class AdaptiveOversampling(MadeOf, Independent):
    """Draw a rank r and a factor f that is large for the anchor, and take the item of rank r on that factor.

    With v the anchor's vector and sigma_f the standard deviation of factor f over the items:

        p(f | a) = |v_f| sigma_f / sum,    p(j | a) = sum_f p(f | a) p(rank_f(j)) over what is not known of a

    where rank_f counts from the highest value of f if v_f > 0, and from the lowest if not. For an anchor of all zeros
    every factor is equally likely. A known item is redrawn a few times, and then exactly from the formula.

    Ranks are those of the last `update`. The paper sorts again every n log n draws, so that a draw costs O(d) with the
    sorting included; `due` says when that is. The ranking depends on the axes: rotated factors give other negatives for
    the same scores.

    Rendle and Freudenthaler. Improving Pairwise Learning for Item Recommendation from Implicit Feedback. WSDM 2014.

    Args:
        positives: What is excluded, exactly: positives and ignored pairs.
        item_factors: (n_items, d) the items' current vectors, NumPy or torch; `update` sets later ones.
        embed: embed(anchors (B,)) -> (B, d), the anchors' current vectors, for a score that is the dot product.
        scale: lambda, above 0, in ranks, or a function of the step: p(r) is proportional to exp(-r / lambda).
        on_short: "pad" or "raise", if every item is known of an anchor.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> known = ns.Positives.from_pairs([0, 1], [9, 0], n_items=10)
        >>> items, users = np.arange(10.0)[:, None] * [1.0, -1.0], np.eye(2)
        >>> sampler = AdaptiveOversampling(known, items, lambda anchors: users[anchors], scale=0.1)
        >>> sampler.sample(ns.Query([0, 1]), 3, rng=ns.rng_for(0)).ids.tolist()
        [[8, 8, 8], [1, 1, 1]]
    """

    _made_of = ("embed",)

    def __init__(
        self, positives: Positives, item_factors: Any, embed: Embed, scale: Any, *, on_short: str = "pad"
    ) -> None:
        """Sort the items by each factor: O(d n log n)."""
        check_kind("positives", positives, Positives, "a Positives")
        check_function("embed", embed, "embed(anchors)")
        check_on_short(on_short)
        self.positives, self.embed, self.scale, self.on_short = positives, embed, scale, on_short
        self._scale = number("scale", scale, above=0, finite=True)
        self._ranking = _Ranking.of(item_factors, positives.n_items)
        self._draws = 0
        self._lock = Lock()

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives."""
        check_query(query)
        anchors = anchors_of(query, self.positives.n_anchors)
        n_items, scale = self.positives.n_items, self._scale(query.step)
        counts, width = wanted_slots(k, len(query), rng)
        ranking = self._ranking  # an update in another thread does not change that of this call
        vectors = self._vectors(query, len(ranking.spread))
        has_free = self.positives.count(anchors, relation="any") < n_items
        ids = np.full((len(anchors), width), -1, np.int64)
        generator = generator_of(key_from(rng))
        rows, slots = np.nonzero(in_use(counts, width) & has_free[:, None])
        with self._lock:
            self._draws += len(rows)
        for _ in range(_REDRAWS):
            ranks = _ranks(n_items, scale, generator.random(len(rows)))
            items = ranking.items(vectors[rows], ranks, generator.random(len(rows)))
            known = self.positives.contains(anchors[rows], items, relation="any")
            ids[rows[~known], slots[~known]] = items[~known]
            rows, slots = rows[known], slots[known]
        rows_at_once = max(1, _NUMBERS_AT_ONCE // n_items)
        for start in range(0, len(rows), rows_at_once):
            block = slice(start, start + rows_at_once)
            log_chances = ranking.log_chances(vectors[rows[block]], scale)
            every = np.broadcast_to(np.arange(n_items), log_chances.shape)
            known = self.positives.contains(anchors[rows[block]], every, relation="any")
            noise = generator.gumbel(size=log_chances.shape)  # the highest of log-chances + noise is an exact draw
            ids[rows[block], slots[block]] = np.where(known, -np.inf, log_chances + noise).argmax(axis=1)
        return Negatives(ids, dropped=shortfall(self.on_short, ids, counts)).like(query)

    def _vectors(self, query: Query, dim: int) -> Floats:
        """(B, d) the anchors' vectors in NumPy, without gradients."""
        with without_gradients(query.anchors):
            vectors = np.asarray(to_numpy(self.embed(query.anchors)), np.float64)
        shape = (len(query), dim)
        if vectors.shape != shape:
            raise_invalid("embed", f"a function that returns shape {shape}", f"shape {vectors.shape}")
        check_all("embed", vectors, np.isfinite(vectors), "a function that returns finite numbers")
        return vectors

    def update(self, item_factors: Any) -> None:
        """Rank the items again by their current vectors (n_items, d): O(d n log n)."""
        ranking = _Ranking.of(item_factors, self.positives.n_items)
        with self._lock:
            self._ranking, self._draws = ranking, 0

    @property
    def due(self) -> bool:
        """Whether n log n negatives were drawn since the last ranking: then the paper calls for `update`."""
        n_items = self.positives.n_items
        return self._draws >= n_items * math.log(max(n_items, 2))

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """The ranks, 4 bytes per item and factor, and how many negatives were drawn by them."""
        with self._lock:
            ranking, draws = self._ranking, self._draws
        return {"order": ranking.order.copy(), "spread": ranking.spread.copy(), "draws": draws}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned. Raises NaysayError, with nothing changed, if it is not of these factors."""
        shape = self._ranking.order.shape
        entries = {"order": Entry(shape, whole=True), "spread": Entry(shape[:1]), "draws": Entry(whole=True)}
        read = read_state(state, entries)
        check_range("order", read["order"], self.positives.n_items, "items")
        ranking = _Ranking(read["order"].astype(self._ranking.order.dtype), read["spread"])
        with self._lock:
            self._ranking, self._draws = ranking, int(read["draws"])

    def __repr__(self) -> str:
        return described(self, item_factors=self._ranking.order.T)


class _Ranking(NamedTuple):
    """Items ranked by each factor of their vectors."""

    order: NDArray[Any]  # (d, n) the items of each factor, highest value first, equal ones by id
    spread: Floats  # (d,) the standard deviation of each factor

    @classmethod
    def of(cls, item_factors: Any, n_items: int) -> _Ranking:
        """The ranks of item vectors (n, d), checked."""
        factors = as_array("item_factors", to_numpy(item_factors))
        if factors.ndim != 2 or len(factors) != n_items or not factors.size or factors.dtype.kind not in "iuf":
            got = f"{factors.dtype} of shape {factors.shape}"
            raise_invalid("item_factors", f"numbers of shape ({n_items}, d)", got)
        check_all("item_factors", factors, np.isfinite(factors), "finite")
        columns = np.ascontiguousarray(factors.T, np.float64)
        order = np.argsort(-columns, axis=1, kind="stable")
        return cls(order.astype(np.int32 if n_items < 1 << 31 else np.int64), columns.std(axis=1))

    def shares(self, vectors: Floats) -> Floats:
        """(m, d) |v_f| sigma_f; 1 for every factor where a row has nothing but zeros."""
        shares = np.abs(vectors) * self.spread
        return np.where(shares.any(axis=1, keepdims=True), shares, 1.0)

    def items(self, vectors: Floats, ranks: Ids, chances: Floats) -> Ids:
        """(m,) the item of rank `ranks` (m,), from 0, on a factor that is drawn for each row by `chances` (m,)."""
        until = np.cumsum(self.shares(vectors), axis=1)
        factor = np.count_nonzero(until <= (chances * until[:, -1])[:, None], axis=1)
        factor = np.minimum(factor, until.shape[1] - 1)
        from_highest = vectors[np.arange(len(vectors)), factor] > 0
        place = np.where(from_highest, ranks, self.order.shape[1] - 1 - ranks)
        return np.asarray(self.order[factor, place], np.int64)

    def log_chances(self, vectors: Floats, scale: float) -> Floats:
        """(m, n) log sum_f p(f) exp(-rank_f / scale) of all items, up to a number for each row."""
        n_items = self.order.shape[1]
        with np.errstate(divide="ignore"):
            log_shares = np.log(self.shares(vectors))
        log_chances = np.full((len(vectors), n_items), -np.inf)
        rank = np.empty(n_items, np.int64)
        for factor, order in enumerate(self.order):
            rank[order] = np.arange(n_items)
            ranks = np.where(vectors[:, factor, None] > 0, rank, n_items - 1 - rank)
            log_chances = np.logaddexp(log_chances, log_shares[:, factor, None] - ranks / scale)
        return log_chances


def _ranks(n: int, scale: float, chances: Floats) -> Ids:
    """(m,) ranks from 0 to n - 1, in proportion to exp(-rank / scale), by inversion: O(1) each."""
    steps = -scale * np.log1p(chances * np.expm1(-n / scale))
    return np.asarray(np.minimum(steps, n - 1), np.int64)


# ---- by a Markov chain ----------------------------------------------------------------------------------


@final
@public
@dataclass(eq=False, repr=False)
class MarkovChain(Independent):
    """Draw negatives with probability proportional to score^power, by a chain of a few proposals per row.

    From the state x a proposal y is, with probability `uniform`, any item that is not known, else one of the
    `neighbours` of x. It becomes the state with probability

        min(1, target(y) q(x | y) / (target(x) q(y | x))),
        q(y | x) = uniform / n_free + (1 - uniform) [y in N(x)] / |N(x)|

    A known item has target 0. After `steps` proposals each slot is the state one proposal later. The chain of an anchor
    goes on where it was: `observe` stores its last state. The target is reached only in the limit.

    Yang et al. Understanding Negative Sampling in Graph Representation Learning. KDD 2020 (MCNS, power 0.25). Its code
    jumps to proposals without acceptance after the first steps, and cannot reach the first item.

    Cost: steps + K scores per row, one after the other; 8 bytes per anchor.

    Args:
        positives: What is known, which is never returned.
        score: As in `Dynamic`; above 0 for target "power".
        neighbours: (n_items, m) ids, -1 for none; None: uniform proposals only.
        uniform: The share of uniform proposals, above 0: without them a chain may never leave a part of the graph.
        power: Of the score.
        target: "power" or "softmax": e^{score / temperature}.
        temperature: Of the softmax, or a function of the step.
        steps: Proposals before the first slot.
        on_short: "pad" or "raise", if nothing is free.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> known = ns.Positives.from_pairs([0], [0], n_items=4)
        >>> chain = MarkovChain(known, lambda anchors, ids: ids**2.0, power=0.5)
        >>> drawn = chain.sample(ns.Query([0] * 2000), 1, rng=ns.rng_for(0)).ids[:, 0]
        >>> (np.bincount(drawn, minlength=4) / 2000).round(1).tolist()              # 1, 2 and 3 of 6
        [0.0, 0.2, 0.3, 0.5]
    """

    needs_main_process = True  # its draws depend on what it was taught in the training loop

    positives: Positives
    score: Score
    neighbours: Any = None
    _: KW_ONLY
    uniform: float = 0.5
    power: float = 0.25
    target: str = "power"
    temperature: Any = 1.0
    steps: int = 10
    on_short: str = "pad"
    _lock: Lock = field(init=False)

    def __post_init__(self) -> None:
        check_kind("positives", self.positives, Positives, "a Positives")
        check_score(self.score)
        check_on_short(self.on_short)
        check_one_of("target", self.target, ("power", "softmax"))
        check_number("uniform", self.uniform, above=0, at_most=1)
        check_number("power", self.power, at_least=0, finite=True)
        check_whole("steps", self.steps, 0)
        self._temperature = number("temperature", self.temperature, above=0, finite=True)
        n_items, given = self.positives.n_items, self.neighbours
        lists = np.full((n_items, 1), -1) if given is None else as_array("neighbours", to_numpy(given))
        if lists.ndim != 2 or len(lists) != n_items or lists.dtype.kind not in "iu":
            raise_invalid("neighbours", f"ids of shape ({n_items}, m)", f"{lists.dtype} of shape {lists.shape}")
        check_range("neighbours", lists.ravel(), n_items, "items", least=-1)
        lists = lists if lists.shape[1] else np.full((n_items, 1), -1)
        filled_first = np.argsort(lists < 0, axis=1, kind="stable")
        self._near = np.take_along_axis(lists.astype(np.int64), filled_first, axis=1)
        self._degrees = np.count_nonzero(lists >= 0, axis=1)
        self._free = Everything(self.positives, distinct=False)
        self._lock = Lock()
        self._last = np.full(self.positives.n_anchors, -1, np.int64)

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives, in the order of the chain."""
        check_query(query)
        anchors = anchor_ids(query)
        counts, width = wanted_slots(k, len(query), rng)
        length = self.steps + width
        fresh = np.asarray(self._free.draw(query, length + 1, rng=rng).ids)
        numbers = generator_of(key_from(rng)).random((length, 3, len(anchors)))
        n_free = np.maximum(self.positives.n_items - np.diff(self.positives.indptr)[anchors], 1)
        with self._lock:
            state = self._last[anchors]
        state = np.where((state < 0) | self._is_known(anchors, state), fresh[:, 0], state)
        log_state = self._log_target(query, state)
        ids = np.full((len(anchors), width), -1, np.int64)
        for step, (which_part, which_neighbour, acceptance) in enumerate(numbers):
            by_neighbours = self._neighbour(state, which_neighbour)
            proposal = np.where(which_part < self.uniform, fresh[:, step + 1], by_neighbours)
            proposal = np.where((proposal < 0) | self._is_known(anchors, proposal), state, proposal)
            log_proposal = self._log_target(query, proposal)
            log_back, log_there = self._log_q(state, proposal, n_free), self._log_q(proposal, state, n_free)
            log_ratio = log_proposal - log_state + log_back - log_there
            moves = np.log(np.maximum(acceptance, 1e-300)) < log_ratio
            state, log_state = np.where(moves, proposal, state), np.where(moves, log_proposal, log_state)
            if step >= self.steps:
                ids[:, step - self.steps] = state
        ids[~in_use(counts, width)] = -1
        return Negatives(ids, dropped=shortfall(self.on_short, ids, counts)).like(query)

    def observe(self, query: Query, negatives: Any, *, positive_scores: Any = None, vectors: Any = None) -> None:
        """Let each anchor's chain go on from the last of the negatives that `sample` returned; the rest is not used."""
        check_query(query)
        anchors, ids = anchor_ids(query), np.asarray(to_numpy(negatives.ids))
        check_range("negatives", ids.ravel(), self.positives.n_items, "items", least=-1)
        place = np.where(ids >= 0, np.arange(ids.shape[1]), -1).max(axis=1, initial=-1)
        rows = np.flatnonzero(place >= 0)
        with self._lock:
            self._last[anchors[rows]] = ids[rows, place[rows]]

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """The state of each anchor's chain, -1 before the first."""
        with self._lock:
            return {"last": self._last.copy()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned; what has become known since then is left out at the next draw."""
        last = read_state(state, {"last": Entry(self._last.shape, whole=True)})["last"]
        check_range("last", last, self.positives.n_items, "items", least=-1)
        with self._lock:
            self._last = last

    def _is_known(self, anchors: Ids, ids: Ids) -> NDArray[np.bool_]:
        return self.positives.contains(anchors, np.maximum(ids, 0)[:, None], relation="any")[:, 0]

    def _neighbour(self, state: Ids, chances: Floats) -> Ids:
        """One neighbour of each state; -1 if it has none."""
        item = np.maximum(state, 0)
        place = (chances * self._degrees[item]).astype(np.int64)
        has_some = (state >= 0) & (self._degrees[item] > 0)
        return np.where(has_some, self._near[item, place], -1)

    def _log_q(self, there: Ids, here: Ids, n_free: Ids) -> Floats:
        """(B,) the log-probability that the mixture proposes `there` from `here`."""
        item = np.maximum(here, 0)
        share = (self._near[item] == there[:, None]).sum(axis=1) / np.maximum(self._degrees[item], 1)
        return np.asarray(np.log(self.uniform / n_free + (1 - self.uniform) * share))

    def _log_target(self, query: Query, ids: Ids) -> Floats:
        """(B,) the logarithm of the target, up to a constant; 0 where there is no item."""
        given = score_slots(self.score, query, like_query(ids[:, None], query))
        scores = np.asarray(to_numpy(given), np.float64)[:, 0]
        if self.target == "softmax":
            return np.where(ids < 0, 0.0, scores / self._temperature(query.step))
        bad = (ids >= 0) & (scores <= 0)
        if bad.any():
            raise_invalid("score", "a function that returns numbers above 0", first_bad(scores, bad), 'Or "softmax".')
        return np.where(ids < 0, 0.0, self.power * np.log(np.where(scores > 0, scores, 1.0)))
