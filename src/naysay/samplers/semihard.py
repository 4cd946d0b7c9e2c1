"""Semi-hard sampling: negatives that lie farther than the positive, but within a margin of it."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, final

import numpy as np

from naysay._slots import Score
from naysay.checks import check_one_of, public
from naysay.rng import key_from
from naysay.samplers._candidates import FromPool, check_parts, number_at, scored_candidates, step_of, whole_at
from naysay.samplers._top_k import one_after_other, pick, pick_any
from naysay.types import Negatives, Pool, Query

CHOICES = ("hardest", "random")
OTHERWISE = ("pad", "easy", "hardest")
NOT_SEMIHARD = "not semi-hard"


@final
@public
@dataclass(eq=False, repr=False)
class SemiHard(FromPool):
    """Draw candidates, and take k of those whose score lies in the band s_p - margin < s_n < s_p.

    `candidates` and `margin` may be functions of the step. The query must have positives, except for triples, where the
    positive is the triple itself. In distances the band is d_ap < d_an < d_ap + margin: pass score = -distance, squared
    for FaceNet's. Both ends are excluded, so a copy of the positive is never semi-hard.

    `dropped` counts {"not semi-hard": n}: slots for which the band had no candidate, whether `otherwise` filled them or
    not. {"exhausted": n} are slots beyond the row's candidates. `scores` (B, K) are the model's. log_q is None, because
    the choice depends on them. Cost: the pool's draw, score for (B, candidates) and (B, 1), one or two partial sorts.

    Schroff, Kalenichenko, Philbin. FaceNet. CVPR 2015, which takes any of the band (choose="random"); it does not say
    what happens in a row without one. pytorch-metric-learning's "semihard" of BatchEasyHardMiner is margin=inf,
    choose="hardest", otherwise="pad"; TensorFlow Addons falls back to the lowest score of all instead.

    Args:
        pool: Where candidates come from. It excludes known positives.
        score: As in `Dynamic`; also called for each row's positive, with n = 1.
        candidates: How many candidates to draw and score for each anchor.
        margin: Above 0, in units of the score; numpy.inf takes everything that is farther than the positive.
        choose: "hardest" takes the k highest of the band, "random" any k of it.
        otherwise: What fills a row whose band has fewer than k. "pad": nothing, the slots stay empty. "easy": those
            below the band (s_n <= s_p - margin), the nearest first. "hardest": any of the others, the highest first,
            also those above the positive.
        on_short: "pad" or "raise", if slots stay empty.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> pool = ns.pools.Everything(ns.Positives.from_pairs([0, 1], [6, 3], n_items=10))
        >>> sampler = SemiHard(pool, score=lambda anchors, ids: ids.astype(float), candidates=9, margin=3.0)
        >>> negatives = sampler.sample(ns.Query([0, 1], positives=[6, 3]), 3, rng=ns.rng_for(0))
        >>> negatives.ids
        array([[ 5,  4, -1],
               [ 2,  1, -1]])
        >>> negatives.dropped
        {'not semi-hard': 2}
    """

    pool: Pool
    score: Score
    candidates: Any
    margin: Any
    _: KW_ONLY
    choose: str = "hardest"
    otherwise: str = "pad"
    on_short: str = "pad"

    def __post_init__(self) -> None:
        check_parts(self.pool, self.score, self.on_short)
        check_one_of("choose", self.choose, CHOICES)
        check_one_of("otherwise", self.otherwise, OTHERWISE)
        self._settings(None)

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives, those of the band first."""
        candidates, margin = self._settings(step_of(query))
        scored = scored_candidates(self, query, k, rng, with_positive=True, candidates=candidates)
        scores, positive = scored.scores, scored.positive
        band = scored.filled & (scores < positive) & (scores > positive - margin)
        if self.choose == "random":
            choice = pick_any(band, scored.width, key_from(rng), scores)
        else:
            choice = pick(scores, band, scored.width)
        if self.otherwise != "pad":
            rest = scored.filled & ~band
            if self.otherwise == "easy":
                rest &= scores < positive
            choice = one_after_other(choice, pick(scores, rest, scored.width))
        return scored.take(choice, self.on_short, NOT_SEMIHARD, band)

    def _settings(self, step: int | None) -> tuple[Any, Any]:
        return whole_at("candidates", self.candidates, step), number_at("margin", self.margin, step, above=0)
