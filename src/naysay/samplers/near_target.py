"""NearTarget: candidates whose score is nearest to a target that depends on the positive's score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, final

import numpy as np

from naysay._slots import Score, of_kind, where
from naysay.arrays import is_torch, module_of
from naysay.checks import public, raise_invalid
from naysay.samplers._candidates import FromPool, check_parts, number_at, scored_candidates, step_of, whole_at
from naysay.samplers._top_k import softened, take_highest
from naysay.types import Array, Negatives, Pool, Query

Target = Callable[[Array, int], Array]  # target(positive scores (B,), step) -> (B,)


@final
@public
@dataclass(eq=False, repr=False)
class NearTarget(FromPool):
    """Draw and score candidates, and take those whose score is nearest to a target: neither hardest nor easiest.

    With sharpness=None the k nearest are taken; with a number a, k are drawn without repeats by weights
    exp(-a (score - target)^2), by Gumbel top-k. `scores` (B, K) are the model's. log_q is None, because the choice
    depends on them. Cost: the pool's draw, and one call of score for (B, candidates) and one for the positives.

    Zhou et al. SimANS: Simple Ambiguous Negatives Sampling for Dense Text Retrieval. EMNLP 2022: the target is s + b,
    with sharpness a, for the positive's score s; its code flips the sign of b. Lai et al. Adaptive Hardness Negative
    Sampling for Collaborative Filtering. AAAI 2024: the target is beta / (s + alpha), so that the surer the positive,
    the easier the negative; keep s + alpha above 0.

    Args:
        pool: Where candidates come from. It excludes known positives.
        score: As in `Dynamic`.
        candidates: How many candidates to draw and score for each anchor, or a function of the step.
        target: target(scores of the positives (B,), step) -> (B,), in the query's array type.
        sharpness: None, or a number of at least 0 (or a function of the step): 0 takes any candidates.
        on_short: "pad" or "raise", if a row has fewer candidates than k.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> pool = ns.pools.Everything(ns.Positives.from_pairs([0], [5], n_items=10))
        >>> near = NearTarget(pool, lambda anchors, ids: ids * 1.0, candidates=9, target=lambda own, step: own - 2.2)
        >>> near.sample(ns.Query([0], positives=[5]), 3, rng=ns.rng_for(0)).ids.tolist()
        [[3, 2, 4]]
    """

    pool: Pool
    score: Score
    candidates: Any
    target: Target
    _: KW_ONLY
    sharpness: Any = None
    on_short: str = "pad"

    def __post_init__(self) -> None:
        check_parts(self.pool, self.score, self.on_short)
        if not callable(self.target):
            raise_invalid("target", "a function target(positive_scores, step)", type(self.target).__name__)
        self._settings(None)

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives: the nearest to the target first; with a sharpness, the first drawn first."""
        candidates, sharpness = self._settings(step_of(query))
        found = scored_candidates(self, query, k, rng, with_positive=True, candidates=candidates)
        target = self._target(found.positive[:, 0], query.step)
        away = where(found.filled, found.scores, 0.0) - of_kind(target, found.scores)[:, None]
        near = where(found.filled, -away * away if sharpness is None else -sharpness * away * away, -np.inf)
        values = near if sharpness is None else softened(near, 1.0, rng)
        return take_highest(found.drawn, values, found.counts, found.width, self.on_short, found.scores)

    def _settings(self, step: int | None) -> tuple[Any, Any]:
        candidates = whole_at("candidates", self.candidates, step)
        return candidates, number_at("sharpness", self.sharpness, step, optional=True, at_least=0, finite=True)

    def _target(self, positive: Array, step: int) -> Array:
        """What the user's function returns: (B,) finite numbers in the array type of the scores."""
        target = self.target(positive, step)
        kind = "a tensor" if is_torch(positive) else "a NumPy array"
        if is_torch(target) != is_torch(positive) or tuple(getattr(target, "shape", ())) != tuple(positive.shape):
            got = f"a {type(target).__name__} of shape {tuple(getattr(target, 'shape', ()))}"
            raise_invalid("target", f"a function that returns {kind} of shape {tuple(positive.shape)}", got)
        if not bool(module_of(target).isfinite(target).all()):
            raise_invalid("target", "a function that returns finite numbers", "infinity or NaN")
        return target
