"""WARP: the first candidate that violates the margin, weighted by how soon it came."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._slots import Score
from naysay.arrays import is_torch, need_torch, of_type
from naysay.checks import check_one_of, check_whole, public, raise_invalid
from naysay.samplers._candidates import FromPool, check_parts, number_at, scored_candidates, step_of, whole_at
from naysay.samplers._top_k import pick
from naysay.types import Array, Negatives, Pool, Query

MODES = ("paper", "lightfm")
NO_VIOLATOR = "no violator"
_MAX_WEIGHT = 10.0  # lightfm's MAX_LOSS
_EXACT = 256  # below it harmonic numbers are summed; above it five terms of their series give every digit


@final
@public
@dataclass(eq=False, repr=False)
class Warp(FromPool):
    """Draw candidates one by one until one violates the margin, s_n > s_p - margin; the sooner, the higher its weight.

    `trials` and `margin` may be functions of the step. The query must have positives, except for triples, where the
    positive is the triple itself.

    Each of the k negatives is the next violator, and t counts the trials since the previous one: with independent draws
    they are k WARP steps that share the trials. A trial violates with probability rho, so t is 1 / rho on average, and
    floor((n - 1) / t) estimates the rank of the positive, (n - 1) rho. The estimate is too high on average, as
    E[1 / t] = rho log(1 / rho) / (1 - rho); that is the paper's method. With a distinct pool t is a little smaller.

    `weights` (B, K) are for losses.hinge(..., weights=...). Slots without a violator stay empty and are counted as
    {"no violator": n}. `scores` are the model's, log_q is None. All trials are drawn and scored at once, so the cost is
    that of `trials` candidates, whichever violates first.

    Weston, Bengio, Usunier. WSABIE. IJCAI 2011: candidates are never positives, which do not count as trials; here the
    pool guarantees it, in both modes. lightfm's code draws from all items and counts a positive as a failed trial.

    Args:
        pool: Where candidates come from. It excludes known positives. The paper draws independently: distinct=False.
        score: As in `Dynamic`; also called for each row's positive, with n = 1.
        trials: The maximum number of candidates per row.
        margin: How far below the positive a negative should stay, in units of the score.
        mode: The weight of a negative that took t trials, with n items in all. "paper": L(floor((n - 1) / t)) with
            L(r) = 1 + 1/2 + ... + 1/r. "lightfm": min(log(max(1, floor((n - 1) / t))), 10).
        n_items: n; by default that of the pool's positives.
        on_short: "pad" or "raise", if slots stay empty.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> pool = ns.pools.Everything(ns.Positives.from_pairs([0, 1], [9, 2], n_items=10), distinct=False)
        >>> warp = Warp(pool, score=lambda anchors, ids: ids.astype(float), trials=6)
        >>> negatives = warp.sample(ns.Query([0, 1], positives=[9, 2]), 1, rng=ns.rng_for(0))
        >>> bool(negatives.ids[1, 0] > 1), negatives.weights.shape
        (True, (2, 1))
    """

    pool: Pool
    score: Score
    trials: Any
    margin: Any = 1.0
    _: KW_ONLY
    mode: str = "paper"
    n_items: Any = None
    on_short: str = "pad"

    def __post_init__(self) -> None:
        check_parts(self.pool, self.score, self.on_short)
        check_one_of("mode", self.mode, MODES)
        if self.n_items is None:
            self.n_items = getattr(getattr(self.pool, "positives", None), "n_items", None)
        if self.n_items is None:
            advice = "Pass how many items there are: the weight of a rank depends on it."
            raise_invalid("n_items", "given for a pool without positives", None, advice)
        self.n_items = check_whole("n_items", self.n_items, 1)
        self._settings(None)

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives with `weights`, in the order of trials."""
        trials, margin = self._settings(step_of(query))
        scored = scored_candidates(self, query, k, rng, with_positive=True, trials=trials)
        violates = scored.filled & (scored.scores > scored.positive - margin)
        trial = scored.filled.cumsum(1)  # a slot that the pool left empty is not a trial
        weights = of_type(rank_weights(self.n_items, trials, self.mode), scored.scores)[_waited(trial, violates)]
        choice = pick(trial * -1.0, violates, scored.width)
        weighted = replace(scored, drawn=replace(scored.drawn, weights=weights))
        return weighted.take(choice, self.on_short, NO_VIOLATOR, violates)

    def _settings(self, step: int | None) -> tuple[Any, Any]:
        margin = number_at("margin", self.margin, step, at_least=0, finite=True)
        return whole_at("trials", self.trials, step), margin


def rank_weights(n_items: int, trials: int, mode: str) -> NDArray[np.float64]:
    """(trials + 1,) the weight of a negative that took t = 0 ... trials trials; none takes 0, which weighs 0."""
    ranks = (n_items - 1) // np.arange(1, trials + 1)
    weights = np.minimum(np.log(np.maximum(ranks, 1)), _MAX_WEIGHT) if mode == "lightfm" else harmonic(ranks)
    return np.concatenate([[0.0], weights])


def harmonic(ranks: NDArray[np.int64]) -> NDArray[np.float64]:
    """1 + 1/2 + ... + 1/r for each r, 0 for r = 0: O(1) each, whatever the size of r."""
    small = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, _EXACT))])
    r = np.maximum(ranks, _EXACT).astype(np.float64)
    series = np.log(r) + np.euler_gamma + 1 / (2 * r) - 1 / (12 * r**2) + 1 / (120 * r**4)
    return np.where(ranks < _EXACT, small[np.minimum(ranks, _EXACT - 1)], series)


def _waited(trial: Array, violates: Array) -> Array:
    """(B, n) the number of trials since the last violator before a slot, or since the start."""
    ends = trial * violates
    if is_torch(trial):
        torch = need_torch()
        before = torch.nn.functional.pad(torch.cummax(ends, dim=1).values[:, :-1], (1, 0))
    else:
        before = np.pad(np.maximum.accumulate(ends, axis=1)[:, :-1], ((0, 0), (1, 0)))
    return trial - before
