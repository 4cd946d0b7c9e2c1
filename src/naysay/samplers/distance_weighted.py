"""Distance-weighted sampling: negatives spread evenly over all distances, though nearly all lie at one."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, final

import numpy as np

from naysay._slots import Score
from naysay.arrays import module_of, to_numpy
from naysay.checks import check_whole, first_bad, public, raise_invalid
from naysay.rng import key_from
from naysay.samplers._candidates import FromPool, check_parts, number_at, scored_candidates, step_of, whole_at
from naysay.samplers._top_k import gumbel, pick
from naysay.types import Array, Negatives, Pool, Query

TOO_FAR = "too far"
_ROUNDING = 1e-3  # how far a cosine of rounded unit vectors may lie outside [-1, 1]


@final
@public
@dataclass(eq=False, repr=False)
class DistanceWeighted(FromPool):
    """Draw candidates, and take k of them without repeats, each with weight 1 / q(D) of its distance D.

    `candidates` and the two cutoffs may be functions of the step. Points that are uniform on the unit sphere lie at
    distance D from an anchor with density q(D). With D^2 = 2 - 2 cosine and D >= cutoff the weights are

        log 1/q(D) = (2 - d) log D - (d - 3)/2 log(1 - D^2 / 4)

    so that the distances of the chosen ones are spread evenly between the two cutoffs. The k are drawn by Gumbel top-k.
    `scores` (B, K) are the cosines. log_q is None, because the choice depends on them. Slots for which no candidate was
    near enough are counted as {"too far": n}. Cost: the pool's draw, score for (B, candidates), a partial sort.

    Wu, Manmatha, Smola, Krahenbuhl. Sampling Matters in Deep Embedding Learning. ICCV 2017. The paper bounds 1 / q by a
    number; its code bounds the distance instead, at 0.5 and 1.4, and so do we. A row with nothing near enough stays
    empty, where its code falls back to uniform draws.

    Args:
        pool: Where candidates come from. It excludes known positives.
        score: score(anchors (B,), ids (B, n)) -> (B, n), the cosine of unit vectors, in [-1, 1]. On a pool of triples
            (`Corruption`) score(triples (B, 3), corrupted (B, n, 3)) -> (B, n).
        candidates: How many candidates to draw and score for each anchor.
        dim: d, the dimension of the vectors, at least 2.
        cutoff: Smaller distances get the weight of this one, because the nearest are noisy.
        nonzero_loss_cutoff: This and larger distances get weight 0, because their loss is 0. At most 2.
        on_short: "pad" or "raise", if slots stay empty.

    Examples:
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

    pool: Pool
    score: Score
    candidates: Any
    dim: int
    cutoff: Any = 0.5
    nonzero_loss_cutoff: Any = 1.4
    _: KW_ONLY
    on_short: str = "pad"

    def __post_init__(self) -> None:
        check_parts(self.pool, self.score, self.on_short)
        self.dim = check_whole("dim", self.dim, 2)
        self._settings(None)

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives, the first drawn first."""
        candidates, cutoff, farthest = self._settings(step_of(query))
        scored = scored_candidates(self, query, k, rng, candidates=candidates)
        scores = scored.scores
        _check_cosines(scores, scored.filled)
        squares = (2 - 2 * scores).clip(min=cutoff**2)
        near = scored.filled & (squares < farthest**2)
        log_weights = log_inverse_density(squares.clip(max=farthest**2 * (1 - 1e-6)), self.dim)
        noise = gumbel(tuple(scores.shape), key_from(rng), scores)
        return scored.take(pick(log_weights + noise, near, scored.width), self.on_short, TOO_FAR, near)

    def _settings(self, step: int | None) -> tuple[Any, Any, Any]:
        candidates = whole_at("candidates", self.candidates, step)
        cutoff = number_at("cutoff", self.cutoff, step, above=0, below=2)
        farthest = number_at(
            "nonzero_loss_cutoff",
            self.nonzero_loss_cutoff,
            step,
            above=0.0 if cutoff is None else cutoff,
            at_most=2,
            advice="It must be above `cutoff`.",
        )
        return candidates, cutoff, farthest


def log_inverse_density(squares: Array, dim: int) -> Array:
    """Log 1/q of squared distances D^2 in (0, 4) on the unit sphere in `dim` dimensions, up to a constant."""
    log = module_of(squares).log
    return (2 - dim) / 2 * log(squares) - (dim - 3) / 2 * log(1 - squares / 4)


def _check_cosines(scores: Array, filled: Array) -> None:
    """Raise if scores are not cosines, most likely because vectors were not normalised."""
    bad = filled & (abs(scores) > 1 + _ROUNDING)
    if bad.any():
        rule = "a function that returns cosines, within [-1, 1]"
        raise_invalid("score", rule, first_bad(to_numpy(scores), to_numpy(bad)), "Normalise the vectors first.")
