"""MarkovChain: negatives by a power of the model's own positive probability, reached by Metropolis-Hastings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._lock import Lock
from naysay._slots import Score, check_score, like_query, score_slots
from naysay._state import Entry, read_state
from naysay.arrays import for_checkpoints, to_numpy
from naysay.checks import (
    as_array,
    check_number,
    check_one_of,
    check_range,
    check_whole,
    first_bad,
    public,
    raise_invalid,
)
from naysay.pools._slots import shortfall
from naysay.pools.everything import Everything
from naysay.positives import Positives
from naysay.rng import generator_of, key_from
from naysay.samplers._candidates import Independent, check_known, number_at, wanted_slots
from naysay.types import Negatives, Query, anchor_ids, check_query

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]


@final
@public
@dataclass(eq=False, repr=False)
class MarkovChain(Independent):
    """Draw negatives with probability proportional to score^power, by a chain of a few proposals per row.

    From the state x a proposal y is, with probability `uniform`, any item that is not known, else one of the
    `neighbours` of x. It becomes the state with probability

        min(1, target(y) q(x | y) / (target(x) q(y | x))),
        q(y | x) = uniform / n_free + (1 - uniform) [y in N(x)] / |N(x)|

    q is that of the mixture, whichever part proposed y. A known item has target 0. After `steps` proposals each slot is
    the state one proposal later, so that a row may repeat an item. The chain of an anchor goes on where it was:
    `observe` stores its last state. log_q is None; the target is reached only in the limit.

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
        check_known(self.positives, self.on_short)
        check_score(self.score)
        check_one_of("target", self.target, ("power", "softmax"))
        check_number("uniform", self.uniform, above=0, at_most=1)
        check_number("power", self.power, at_least=0, finite=True)
        number_at("temperature", self.temperature, None, above=0, finite=True)
        check_whole("steps", self.steps, 0)
        n, given = self.positives.n_items, self.neighbours
        lists = np.full((n, 0), -1) if given is None else as_array("neighbours", to_numpy(given))
        if lists.ndim != 2 or len(lists) != n or lists.dtype.kind not in "iu":
            raise_invalid("neighbours", f"ids of shape ({n}, m)", f"{lists.dtype} of shape {lists.shape}")
        check_range("neighbours", lists.ravel(), n, "items", least=-1)
        self._near = lists.astype(np.int64)
        self._free = Everything(self.positives, distinct=False)
        self._lock = Lock()
        self._last = np.full(self.positives.n_anchors, -1, np.int64)

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives, in the order of the chain."""
        check_query(query)
        temperature = number_at("temperature", self.temperature, query.step, above=0, finite=True)
        anchors = anchor_ids(query)
        counts, width = wanted_slots(k, len(query), rng)
        length = self.steps + width
        fresh = np.asarray(self._free.draw(query, length + 1, rng=rng).ids)
        numbers = generator_of(key_from(rng)).random((length, 3, len(anchors)))
        with self._lock:
            state = self._last[anchors]
        known = self.positives.contains(anchors, np.maximum(state, 0)[:, None], relation="any")[:, 0]
        state = np.where((state < 0) | known, fresh[:, 0], state)
        log_free = -np.log(np.maximum(self.positives.n_items - self._known_counts(anchors), 1))
        log_state = self._log_target(query, state, temperature)
        ids = np.full((len(anchors), width), -1, np.int64)
        for step, (how, which, accept) in enumerate(numbers):
            proposal = np.where(how < self.uniform, fresh[:, step + 1], self._neighbour(state, which))
            proposal = np.where((proposal < 0) | self._is_known(anchors, proposal), state, proposal)
            log_proposal = self._log_target(query, proposal, temperature)
            ratio = log_proposal - log_state + self._log_ratio(state, proposal, log_free)
            moved = np.log(np.maximum(accept, 1e-300)) < ratio
            state, log_state = np.where(moved, proposal, state), np.where(moved, log_proposal, log_state)
            if step >= self.steps:
                ids[:, step - self.steps] = state
        ids[np.arange(width) >= counts[:, None]] = -1
        return Negatives(ids, dropped=shortfall(self.on_short, ids, counts)).like(query)

    def observe(self, query: Query, negatives: Any, *, positive_scores: Any = None, vectors: Any = None) -> None:
        """Let each anchor's chain go on from the last of its negatives.

        Args:
            query: The anchors.
            negatives: What `sample` returned.
            positive_scores: Not used.
            vectors: Not used.
        """
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
        shape = (self.positives.n_anchors,)
        entry = Entry(shape, whole=True)
        read = read_state(state, {"last": entry})
        with self._lock:
            self._last = read["last"]

    def _known_counts(self, anchors: Ids) -> Ids:
        return np.diff(self.positives.indptr)[anchors]

    def _is_known(self, anchors: Ids, ids: Ids) -> NDArray[np.bool_]:
        return self.positives.contains(anchors, np.maximum(ids, 0)[:, None], relation="any")[:, 0]

    def _neighbour(self, state: Ids, uniform: Floats) -> Ids:
        """One neighbour of each state; -1 if it has none."""
        near = self._near[np.maximum(state, 0)]
        counts = (near >= 0).sum(axis=1)
        order = np.argsort(near < 0, axis=1, kind="stable")
        place = np.minimum((uniform * counts).astype(np.int64), np.maximum(counts - 1, 0))
        if not near.shape[1]:
            return np.full(len(state), -1)
        chosen = near[np.arange(len(near)), order[np.arange(len(near)), place]]
        return np.where((counts > 0) & (state >= 0), chosen, -1)

    def _log_ratio(self, state: Ids, proposal: Ids, log_free: Floats) -> Floats:
        """Log q(x | y) - log q(y | x) of the mixture."""

        def log_q(there: Ids, here: Ids) -> Floats:
            near = self._near[np.maximum(here, 0)]
            share = (near == there[:, None]).sum(axis=1) / np.maximum((near >= 0).sum(axis=1), 1)
            return np.asarray(np.log(self.uniform * np.exp(log_free) + (1 - self.uniform) * share))

        return log_q(state, proposal) - log_q(proposal, state)

    def _log_target(self, query: Query, ids: Ids, temperature: float) -> Floats:
        """(B,) the logarithm of the target, up to a constant; 0 where there is no item."""
        given = score_slots(self.score, query, like_query(ids[:, None], query))
        scores = np.asarray(to_numpy(given), np.float64)[:, 0]
        if self.target == "softmax":
            return np.where(ids < 0, 0.0, scores / temperature)
        bad = (ids >= 0) & (scores <= 0)
        if bad.any():
            raise_invalid("score", "a function that returns numbers above 0", first_bad(scores, bad), 'Or "softmax".')
        return np.where(ids < 0, 0.0, self.power * np.log(np.where(scores > 0, scores, 1.0)))
