"""WARP: the first candidate that comes too close to the positive, weighed by how soon it came."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import is_torch, need_torch, to_torch
from naysay.checks import check_one_of, check_whole, public, raise_invalid
from naysay.pools._slots import ON_SHORT
from naysay.quantity.schedules import at_step
from naysay.samplers._draw import check_is_pool
from naysay.samplers._numbers import check_number
from naysay.samplers._partner import partner_scores
from naysay.samplers._pick import pick, reasons
from naysay.samplers._scored import Score, candidates_of, check_score, score_slots, take, wanted_slots
from naysay.types import Array, Negatives, Pool, Query, check_query

MODES = ("paper", "lightfm")
NO_VIOLATOR = "no violator"
_MOST = 10.0  # lightfm's MAX_LOSS
_EXACT = 256  # below, harmonic numbers are added up; above, five terms of their series give every digit


@final
@public
class Warp:
    """Draw one candidate after the other until one violates the margin, s_n > s_p - margin; the sooner, the heavier.

    trials and margin may be functions of the step. The query must have positives, unless it is of triples, whose
    positive is the triple itself.

    Of k negatives each is the next violator, and t counts the trials since the one before: with independent draws they
    are k WARP steps that share the trials. A violator comes with probability rho a trial, so t is 1 / rho on average,
    and floor((n - 1) / t) estimates the rank of the positive, (n - 1) rho. It is too high on average, as
    E[1 / t] = rho log(1 / rho) / (1 - rho): that is the paper's, and kept. With a distinct pool t is a little smaller.

    `weights` (B, K) carry L, for losses.hinge(..., weights=...); rows without a violator stay empty and are counted
    {"no violator": n}. `scores` are the model's, log_q is None. All trials are drawn and scored at once: the cost is
    that of `trials` candidates, whichever comes first.

    Weston, Bengio, Usunier. WSABIE. IJCAI 2011: candidates are never positives, which do not count as trials; that is
    the pool's promise here, in both modes. lightfm's code draws from all items and counts a positive as a failed trial.

    Args:
        pool: Where candidates come from; it has excluded what is known. The paper draws independently:
            distinct=False.
        score: Score(anchors (B,), ids (B, n)) -> (B, n), higher is closer; also asked for each row's positive, n =
            1. On a pool of triples (`Corruption`) score(triples (B, 3), corrupted (B, n, 3)) -> (B, n).
        trials: How many candidates a row may look at.
        margin: How far below the positive a negative should stay, in units of the score.
        mode: The weight of a negative that took t trials, with n items in all: "paper" L(floor((n - 1) / t)), L(r)
            = 1 + 1/2 + ... + 1/r "lightfm" min(log(max(1, floor((n - 1) / t))), 10).
        n_items: N; by default that of the pool's positives.
        on_short: "pad" or "raise", if slots stay empty.

    Example:
        >>> import numpy as np, naysay as ns
        >>> pool = ns.pools.Everything(ns.Positives.from_pairs([0, 1], [9, 2], n_items=10), distinct=False)
        >>> warp = Warp(pool, score=lambda anchors, ids: ids.astype(float), trials=6)
        >>> negatives = warp.sample(ns.Query([0, 1], positives=[9, 2]), 1, rng=ns.rng_for(0))
        >>> bool(negatives.ids[1, 0] > 1), negatives.weights.shape
        (True, (2, 1))
    """

    def __init__(
        self,
        pool: Pool,
        score: Score,
        trials: Any,
        margin: Any = 1.0,
        *,
        mode: str = "paper",
        n_items: int | None = None,
        on_short: str = "pad",
    ) -> None:
        """Keep the parts; numbers are looked at here, functions of the step when they are called."""
        check_is_pool(pool)
        check_score(score)
        check_one_of("mode", mode, MODES)
        check_one_of("on_short", on_short, ON_SHORT)
        known = getattr(pool, "positives", None)
        found = n_items if n_items is not None else getattr(known, "n_items", None)
        if found is None:
            advice = "Pass how many items there are: the weight of a rank depends on it."
            raise_invalid("n_items", "given for a pool without positives", None, advice)
        self.n_items = check_whole("n_items", found, 1)
        self.pool, self.score, self.trials, self.margin = pool, score, trials, margin
        self.mode, self.on_short = mode, on_short
        self.distinct = getattr(pool, "distinct", None)
        if not callable(trials):
            check_whole("trials", trials, 1)
        if not callable(margin):
            _check_margin(margin)

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """(B, K) weighed negatives, in the order of trials; k is a number, K = ceil(k), realised per row; or (B,)."""
        check_query(query)
        trials = check_whole("trials", at_step(self.trials, query.step), 1)
        margin = _check_margin(at_step(self.margin, query.step))
        counts, width = wanted_slots(k, len(query), rng)
        positive = partner_scores(self.score, query)[:, None]
        drawn = candidates_of(self.pool, query, trials, rng)
        scores = score_slots(self.score, query, drawn.ids, drawn.side)
        there = drawn.ids >= 0
        violates = there & (scores > positive - margin)
        trial = there.cumsum(1)  # a slot that the pool left empty is no trial
        weights = _like(rank_weights(self.n_items, trials, self.mode), scores)[_waited(trial, violates)]
        order, held = pick(trial * -1.0, violates, width)
        answer = take(replace(drawn, weights=weights), order, held, counts, width, self.on_short, scores)
        return replace(answer, dropped=reasons(NO_VIOLATOR, counts, drawn.ids, violates))

    def __repr__(self) -> str:
        """The pool and the settings."""
        return f"Warp({self.pool!r}, trials={self.trials}, margin={self.margin}, mode={self.mode!r})"


def rank_weights(n_items: int, trials: int, mode: str) -> NDArray[np.float64]:
    """(trials + 1,) the weight of a negative that took t = 0 ... trials trials; none takes 0, which weighs 0."""
    ranks = (n_items - 1) // np.arange(1, trials + 1)
    weights = np.minimum(np.log(np.maximum(ranks, 1)), _MOST) if mode == "lightfm" else harmonic(ranks)
    return np.concatenate([[0.0], weights])


def harmonic(ranks: NDArray[np.int64]) -> NDArray[np.float64]:
    """1 + 1/2 + ... + 1/r for each r, 0 for r = 0: O(1) each, whatever the size of r."""
    small = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, _EXACT))])
    r = np.maximum(ranks, _EXACT).astype(np.float64)
    series = np.log(r) + np.euler_gamma + 1 / (2 * r) - 1 / (12 * r**2) + 1 / (120 * r**4)
    return np.where(ranks < _EXACT, small[np.minimum(ranks, _EXACT - 1)], series)


def _check_margin(value: Any) -> float:
    """A finite number of at least 0."""
    return check_number("margin", value, "a number of at least 0", lambda margin: 0 <= margin < np.inf)


def _waited(trial: Array, violates: Array) -> Array:
    """(B, n) how many trials lie between the last violator before a slot, or the start, and the slot."""
    ends = trial * violates
    if is_torch(trial):
        torch = need_torch()
        before = torch.nn.functional.pad(torch.cummax(ends, dim=1).values[:, :-1], (1, 0))
    else:
        before = np.pad(np.maximum.accumulate(ends, axis=1)[:, :-1], ((0, 0), (1, 0)))
    return trial - before


def _like(values: NDArray[np.float64], like: Array) -> Array:
    """Numbers in the type of an array, on its device."""
    return to_torch(values).to(like) if is_torch(like) else values.astype(like.dtype)
