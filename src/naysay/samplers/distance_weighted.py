"""Distance-weighted sampling: negatives from all distances alike, not from the one where nearly all of them lie."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, final

import numpy as np

from naysay.arrays import is_torch, to_numpy
from naysay.checks import check_one_of, check_whole, first_bad, public, raise_invalid
from naysay.pools._slots import ON_SHORT
from naysay.quantity.schedules import at_step
from naysay.rng import key_from
from naysay.samplers._choose import gumbel
from naysay.samplers._draw import check_is_pool
from naysay.samplers._numbers import check_number
from naysay.samplers._pick import pick, reasons
from naysay.samplers._scored import Score, candidates_of, check_score, score_slots, take, wanted_slots
from naysay.types import Array, Negatives, Pool, Query, check_query

TOO_FAR = "too far"
_BEYOND = 1e-3  # how far a cosine of rounded unit vectors may lie outside [-1, 1]


@final
@public
class DistanceWeighted:
    """Draw `candidates`, and take k of them without repeats, each with weight 1 / q(D) of its distance D.

    candidates and the two cutoffs may be functions of the step. Points that are uniform on the unit sphere lie at
    distance D from an anchor with density q(D), and weights are 1 / q, with D^2 = 2 - 2 cosine and D >= cutoff:

        log 1/q(D) = (2 - d) log D - (d - 3)/2 log(1 - D^2 / 4)

    so the chosen ones come from every distance between the two cutoffs alike. k at once come by Gumbel top-k.
    `scores` (B, K) are the cosines; log_q is None, because the choice depends on them. Slots for which no candidate was
    near enough are counted {"too far": n}. Cost: the pool's draw, score for (B, candidates), a partial sort.

    Wu, Manmatha, Smola, Krahenbuhl. Sampling Matters in Deep Embedding Learning. ICCV 2017. The paper bounds 1 / q by a
    number; its code bounds the distance instead, at 0.5 and 1.4, and so do we. A row with nothing near enough stays
    empty, where its code falls back on uniform draws.

    Args:
        pool: Where candidates come from; it has excluded what is known.
        score: Score(anchors (B,), ids (B, n)) -> (B, n): the cosine of unit vectors, in [-1, 1]. On a pool of
            triples (`Corruption`) score(triples (B, 3), corrupted (B, n, 3)) -> (B, n).
        candidates: How many are drawn and scored for each anchor.
        dim: D, how many numbers a vector has, at least 2.
        cutoff: Distances below it count as it: the nearest, which are noisy, get no more weight than that.
        nonzero_loss_cutoff: Distances from it on get weight 0: their loss is 0 anyway. At most 2, the widest there
            is.
        on_short: "pad" or "raise", if slots stay empty.

    Example:
        >>> import numpy as np, naysay as ns
        >>> vectors = np.random.default_rng(0).normal(size=(100, 8))
        >>> vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        >>> def cosine(anchors, ids):
        ...     return (vectors[anchors][:, None] * vectors[ids]).sum(axis=-1)
        >>> pool = ns.pools.Everything(ns.Positives.from_pairs(np.arange(100), np.arange(100)))
        >>> sampler = DistanceWeighted(pool, cosine, candidates=64, dim=8)
        >>> negatives = sampler.sample(ns.Query([0, 1]), 3, rng=ns.rng_for(0))
        >>> negatives.shape, bool((np.sqrt(2 - 2 * negatives.scores) < 1.4).all())
        ((2, 3), True)
    """

    def __init__(
        self,
        pool: Pool,
        score: Score,
        candidates: Any,
        dim: int,
        cutoff: Any = 0.5,
        nonzero_loss_cutoff: Any = 1.4,
        *,
        on_short: str = "pad",
    ) -> None:
        """Keep the parts; numbers are looked at here, functions of the step when they are called."""
        check_is_pool(pool)
        check_score(score)
        check_one_of("on_short", on_short, ON_SHORT)
        self.dim = check_whole("dim", dim, 2)
        self.pool, self.score, self.candidates = pool, score, candidates
        self.cutoff, self.nonzero_loss_cutoff, self.on_short = cutoff, nonzero_loss_cutoff, on_short
        self.distinct = getattr(pool, "distinct", None)
        if not callable(candidates):
            check_whole("candidates", candidates, 1)
        nearest = None if callable(cutoff) else _check_cutoff(cutoff)
        if not callable(nonzero_loss_cutoff):
            _check_nonzero(nonzero_loss_cutoff, 0.0 if nearest is None else nearest)

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """(B, K) negatives, the first drawn first; k is a number, K = ceil(k), realised per row; or (B,) of them."""
        check_query(query)
        size = check_whole("candidates", at_step(self.candidates, query.step), 1)
        cutoff = _check_cutoff(at_step(self.cutoff, query.step))
        farthest = _check_nonzero(at_step(self.nonzero_loss_cutoff, query.step), cutoff)
        counts, width = wanted_slots(k, len(query), rng)
        drawn = candidates_of(self.pool, query, size, rng)
        scores = score_slots(self.score, query, drawn.ids, drawn.side)
        there = drawn.ids >= 0
        _check_cosines(scores, there)
        squares = (2 - 2 * scores).clip(min=cutoff**2)
        near = there & (squares < farthest**2)
        chances = log_inverse_density(squares.clip(max=farthest**2 * (1 - 1e-6)), self.dim)
        noise = gumbel(tuple(scores.shape), key_from(rng), scores)
        taken = pick(chances + noise, near, width)
        answer = take(drawn, *taken, counts, width, self.on_short, scores)
        return replace(answer, dropped=reasons(TOO_FAR, counts, drawn.ids, near))

    def __repr__(self) -> str:
        """The pool and the numbers."""
        cutoffs = f"cutoff={self.cutoff}, nonzero_loss_cutoff={self.nonzero_loss_cutoff}"
        return f"DistanceWeighted({self.pool!r}, candidates={self.candidates}, dim={self.dim}, {cutoffs})"


def log_inverse_density(squares: Array, dim: int) -> Array:
    """Log 1/q of squared distances D^2 in (0, 4) on the unit sphere in `dim` dimensions, up to a constant."""
    near, far = squares, 1 - squares / 4
    near, far = (near.log(), far.log()) if is_torch(squares) else (np.log(near), np.log(far))
    return (2 - dim) / 2 * near - (dim - 3) / 2 * far


def _check_cosines(scores: Array, there: Array) -> None:
    """Refuse scores that are no cosines: a dot product of vectors that were not normalised, most likely."""
    bad = there & (abs(scores) > 1 + _BEYOND)
    if bad.any():
        rule = "a function that answers with cosines, within [-1, 1]"
        raise_invalid("score", rule, first_bad(to_numpy(scores), to_numpy(bad)), "Normalise the vectors first.")


def _check_cutoff(value: Any) -> float:
    rule = "a distance above 0 and below 2"
    return check_number("cutoff", value, rule, lambda distance: 0 < distance < 2)


def _check_nonzero(value: Any, cutoff: float) -> float:
    rule = f"a distance above cutoff, {cutoff}, and at most 2"
    return check_number("nonzero_loss_cutoff", value, rule, lambda distance: cutoff < distance <= 2)
