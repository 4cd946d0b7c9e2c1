"""Semi-hard sampling: negatives that lie farther than the positive, but within a margin of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, final

import numpy as np

from naysay.checks import check_one_of, check_whole, public
from naysay.pools._slots import ON_SHORT
from naysay.quantity.schedules import at_step
from naysay.rng import key_from
from naysay.samplers._draw import check_is_pool
from naysay.samplers._numbers import check_number
from naysay.samplers._partner import partner_scores
from naysay.samplers._pick import one_after_other, pick, pick_any, reasons
from naysay.samplers._scored import Score, candidates_of, check_score, score_slots, take, wanted_slots
from naysay.types import Negatives, Pool, Query, check_query

CHOICES = ("hardest", "random")
OTHERWISE = ("pad", "easy", "hardest")
NOT_SEMIHARD = "not semi-hard"


@final
@public
class SemiHard:
    """Draw `candidates`, and take k of those whose score lies in the band s_p - margin < s_n < s_p.

    candidates and margin may be functions of the step. The query must have positives, unless it is of triples, whose
    positive is the triple itself. In distances the band is
    d_ap < d_an < d_ap + margin: pass score = -distance, squared for FaceNet's. Both ends are left out, so a copy of
    the positive is never semi-hard.

    `dropped` counts {"not semi-hard": n}: slots for which the band had no candidate, whether `otherwise` filled them or
    not; {"exhausted": n} are slots beyond the row's candidates. `scores` (B, K) are the model's; log_q is None, because
    the choice depends on them. Cost: the pool's draw, score for (B, candidates) and (B, 1), one partial sort or two.

    Schroff, Kalenichenko, Philbin. FaceNet. CVPR 2015, which takes any of the band (choose="random"); it does not say
    what a row without one does. pytorch-metric-learning's "semihard" of BatchEasyHardMiner is margin=inf, choose=
    "hardest", otherwise="pad"; TensorFlow Addons falls back on the lowest score of all instead.

    Args:
        pool: Where candidates come from; it has excluded what is known.
        score: Score(anchors (B,), ids (B, n)) -> (B, n), higher is closer; also asked for each row's positive, n =
            1. On a pool of triples (`Corruption`) score(triples (B, 3), corrupted (B, n, 3)) -> (B, n).
        candidates: How many are drawn and scored for each anchor.
        margin: Above 0, in units of the score; numpy.inf for "the closest that is farther than the positive".
        choose: "hardest": the k highest of the band; "random": any k of it.
        otherwise: What a row takes when its band holds fewer than k: "pad" nothing: the slots stay empty "easy"
            those below the band, s_n <= s_p - margin, the nearest first; none above the positive "hardest" any of
            the others, the highest first, those above the positive included.
        on_short: "pad" or "raise", if slots stay empty.

    Example:
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

    def __init__(
        self,
        pool: Pool,
        score: Score,
        candidates: Any,
        margin: Any,
        *,
        choose: str = "hardest",
        otherwise: str = "pad",
        on_short: str = "pad",
    ) -> None:
        """Keep the parts; numbers are looked at here, functions of the step when they are called."""
        check_is_pool(pool)
        check_score(score)
        check_one_of("choose", choose, CHOICES)
        check_one_of("otherwise", otherwise, OTHERWISE)
        check_one_of("on_short", on_short, ON_SHORT)
        self.pool, self.score, self.candidates, self.margin = pool, score, candidates, margin
        self.choose, self.otherwise, self.on_short = choose, otherwise, on_short
        self.distinct = getattr(pool, "distinct", None)
        if not callable(candidates):
            check_whole("candidates", candidates, 1)
        if not callable(margin):
            _check_margin(margin)

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """(B, K) negatives, those of the band first; k is a number, K = ceil(k), realised per row; or (B,) of them."""
        check_query(query)
        size = check_whole("candidates", at_step(self.candidates, query.step), 1)
        margin = _check_margin(at_step(self.margin, query.step))
        counts, width = wanted_slots(k, len(query), rng)
        positive = partner_scores(self.score, query)[:, None]
        drawn = candidates_of(self.pool, query, size, rng)
        scores = score_slots(self.score, query, drawn.ids, drawn.side)
        there = drawn.ids >= 0
        band = there & (scores < positive) & (scores > positive - margin)
        taken = pick_any(band, width, key_from(rng), scores) if self.choose == "random" else pick(scores, band, width)
        if self.otherwise != "pad":
            rest = there & ~band
            if self.otherwise == "easy":
                rest &= scores < positive
            taken = one_after_other(taken, pick(scores, rest, width))
        answer = take(drawn, *taken, counts, width, self.on_short, scores)
        return replace(answer, dropped=reasons(NOT_SEMIHARD, counts, drawn.ids, band))

    def __repr__(self) -> str:
        """The pool and the settings."""
        numbers = f"candidates={self.candidates}, margin={self.margin}"
        return f"SemiHard({self.pool!r}, {numbers}, choose={self.choose!r}, otherwise={self.otherwise!r})"


def _check_margin(value: Any) -> float:
    """A number above 0, infinity included."""
    return check_number("margin", value, "a number above 0", lambda margin: margin > 0)
