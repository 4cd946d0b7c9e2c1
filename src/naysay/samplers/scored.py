"""Samplers that draw candidates, score them with the model, and choose k of each row by their scores.

They begin alike: `self._draw_scored` returns `Scored` candidates. They differ in which of them are eligible, and in
what order they are taken. What they take in common:

    pool         where candidates come from; it excludes known positives
    score        score(anchors (B,), ids (B, n)) -> (B, n), higher is closer. It gets the query's array type, runs
                 without gradients and never gets -1. On a pool of triples (`Corruption`) it is score(triples (B, 3),
                 corrupted (B, n, 3)). A row's positive is scored with n = 1; a triple is its own positive
    candidates   how many to draw and score for each anchor
    on_short     "pad" or "raise", if slots stay empty

Numbers may be functions of the step (query.step), which makes a curriculum (`naysay.quantity.Linear`). The cost is the
pool's draw, one call of score for (B, candidates), and a partial sort. A choice by scores has no exact probability, so
log_q is None, except where nothing is chosen (`SoftmaxWeights`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from itertools import pairwise
from typing import Any, final

import numpy as np

from naysay._slots import Score, check_score, corrupted_triples, gather, of_kind, partners, score_slots, where
from naysay.arrays import is_torch, module_of, need_torch, of_type, to_numpy, to_torch
from naysay.checks import check_bool, check_one_of, check_whole, first_bad, public, raise_invalid, shown
from naysay.errors import NaysayWarning
from naysay.pools._slots import EXHAUSTED
from naysay.quantity.schedules import at_step
from naysay.rng import key_from
from naysay.samplers._choose import (
    Choice,
    Ids,
    candidates_of,
    draw_k,
    gumbel,
    one_after_other,
    pick,
    pick_any,
    softened,
    take,
    top,
    wanted_slots,
)
from naysay.samplers._settings import (
    FromPool,
    Schedule,
    check_function,
    check_interval,
    check_on_short,
    check_pool,
    check_returned,
    number,
    whole,
)
from naysay.samplers.scores import candidate_scores, positive_scores, positive_similarity
from naysay.text import counted
from naysay.types import Array, Negatives, Pool, Query, check_query

__all__ = [
    "DistanceWeighted",
    "Dynamic",
    "NearPositive",
    "NearTarget",
    "PercentileRange",
    "SemiHard",
    "SoftmaxWeights",
    "Warp",
]


# ---- what they share ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Scored:
    """Scored candidates, and how many of them each row takes."""

    candidates: Negatives  # (B, n), in the query's array type
    scores: Array  # (B, n), -inf in empty slots
    counts: Ids  # (B,) k of each row
    width: int  # K of the answer
    on_short: str
    positive: Array = None  # (B, 1) the score of each row's positive

    @property
    def filled(self) -> Array:
        """(B, n) bool: which slots hold a candidate."""
        return self.candidates.ids >= 0

    def only(self, eligible: Array) -> Scored:
        """The same without candidates that are not eligible (B, n)."""
        ids = where(eligible, self.candidates.ids, -1)
        scores = where(eligible, self.scores, -np.inf)
        return replace(self, candidates=replace(self.candidates, ids=ids), scores=scores)

    def highest(self, values: Array) -> Negatives:
        """Take the k candidates of the highest values (B, n), which are -inf in empty slots; the highest first."""
        order = top(values, min(self.width, values.shape[1]))
        return self.take((order, gather(self.scores, order) > -np.inf))

    def take_top(self, temperature: float, top_m: int | None, rng: np.random.Generator) -> Negatives:
        """Take the top k, k uniformly from the top m, or k without repeats from softmax(scores / temperature)."""
        if top_m is None:
            return self.highest(softened(self.scores, temperature, rng))
        top_slots, kept = pick(self.scores, self.filled, top_m)
        places, kept = pick_any(kept, self.width, key_from(rng), self.scores)
        return self.take((gather(top_slots, places), kept))

    def take(self, choice: Choice) -> Negatives:
        """The chosen slots."""
        return take(self.candidates, choice, self.counts, self.width, self.on_short, self.scores)

    def empty_by_reason(self, eligible: Array, reason: str) -> dict[str, int]:
        """Why slots are empty: {"exhausted": beyond a row's candidates, reason: beyond those eligible (B, n)}."""
        n_candidates = np.count_nonzero(to_numpy(self.filled), axis=1)
        n_eligible = np.count_nonzero(to_numpy(eligible), axis=1)
        beyond_candidates = int(np.maximum(self.counts - n_candidates, 0).sum())
        beyond_eligible = int(np.maximum(np.minimum(self.counts, n_candidates) - n_eligible, 0).sum())
        return {name: n for name, n in ((EXHAUSTED, beyond_candidates), (reason, beyond_eligible)) if n}


class _ScoresCandidates(FromPool):
    """Draws and scores candidates of a pool."""

    pool: Pool
    score: Score
    on_short: str

    def _check_parts(self, count_name: str = "candidates", *, all_candidates: bool = False) -> None:
        """Check what all of them take; with `all_candidates` the number of candidates may be None."""
        check_pool(self.pool)
        check_score(self.score)
        check_on_short(self.on_short)
        self._count_name = count_name
        self._count = whole(count_name, getattr(self, count_name), optional=all_candidates)
        self._has_warned = False

    def _draw_scored(
        self, query: Query, k: Any, rng: np.random.Generator, *, with_positive: bool = False, **k_at_most: int | None
    ) -> Scored:
        """Draw and score candidates; `with_positive` scores each row's positive, too. K above a limit raises."""
        n = self._count(query.step)
        counts, width = wanted_slots(k, len(query), rng, **k_at_most)
        if n is not None and n < width and not self._has_warned:
            self._has_warned = True
            rule = f"`{self._count_name}` must be at least k to fill all slots, got {n} for k {width}"
            text = f"{type(self).__name__}: {rule}. {counted(width - n, 'slot')} of each row will be empty."
            warnings.warn(text, NaysayWarning, stacklevel=4)  # `sample` is wrapped by `public`
        positive = positive_scores(self.score, query)[:, None] if with_positive else None
        candidates, scores = self._with_scores(query, candidates_of(self.pool, query, n, rng))
        return Scored(candidates, scores, counts, width, self.on_short, positive)

    def _with_scores(self, query: Query, drawn: Negatives) -> tuple[Negatives, Array]:
        """Candidates and their scores (B, n)."""
        return drawn, candidate_scores(self.score, query, drawn)


@dataclass(eq=False, repr=False)
class _ScoreAndChoose(_ScoresCandidates):
    """The arguments that most of them begin with."""

    pool: Pool
    score: Score
    candidates: Any
    _: KW_ONLY
    on_short: str = "pad"


def _check_softened(temperature: float, top_m: int | None) -> None:
    if temperature and top_m is not None:
        advice = "Only one of the two softens the choice."
        raise_invalid("top_m", "left out with a `temperature`", top_m, advice)


def _check_at_most(numbers: dict[str, int | None]) -> None:
    """Raise unless each of the numbers that are given is at most the one before."""
    given = [(name, value) for name, value in numbers.items() if value is not None]
    for (wider, most), (name, value) in pairwise(given):
        if value > most:
            raise_invalid(name, f"at most `{wider}`, {most}", value)


def _constant(*settings: Schedule) -> bool:
    """Whether no setting changes with the step, so that they can be checked against each other once."""
    return not any(setting.changes for setting in settings)


def _softmax(logits: Array, filled: Array) -> Array:
    """(B, n) weights that sum to 1 over a row's filled slots, 0 elsewhere."""
    logits = where(filled, logits, -np.inf)
    if is_torch(logits):
        return need_torch().softmax(logits, dim=1).masked_fill(~filled, 0.0)
    largest = logits.max(axis=1, keepdims=True, initial=-np.inf)
    powers = np.exp(logits - np.where(largest > -np.inf, largest, 0.0))
    return powers / np.maximum(powers.sum(axis=1, keepdims=True), np.finfo(powers.dtype).tiny)


# ---- the highest scores ---------------------------------------------------------------------------------


@final
@public
@dataclass(eq=False, repr=False)
class Dynamic(_ScoreAndChoose):
    """Draw candidates from the pool, score them, and take the top k; or sample k, with higher scores more likely.

    Of equal scores the candidate that was drawn first counts as higher. With k = 1, N candidates drawn with replacement
    and m free items, the item of rank r is chosen with probability ((m - r + 1)^N - (m - r)^N) / m^N.

    Zhang, Chen, Wang, Yu. Optimizing Top-N Collaborative Filtering via Dynamic Negative Item Sampling. SIGIR 2013;
    DNS(M, N): Shi et al. On the Theories Behind Hard Negative Sampling for Recommendation. WWW 2023; `ceiling`: Gao and
    Huang. Self-Paced Network Embedding. KDD 2018.

    Args:
        pool: Where candidates come from.
        score: score(anchors (B,), ids (B, n)) -> (B, n), higher is closer; see the top of this page.
        candidates: How many to draw and score; None: all entries of a `Memory` or `InBatch`, of an id the newest.
        temperature: 0 takes the top k (DNS). Above 0 draws k without repeats from softmax(score / temperature).
        ceiling: In (0, 1], with a temperature: leaves out candidates whose softmax(score / temperature) over the row's
            candidates is higher. As it rises, harder candidates enter.
        top_m: If given, k are drawn uniformly from the M = top_m highest: DNS(M, N) with N = candidates. M = 1 is DNS.
        on_short: "pad" or "raise".

    Examples:
        >>> import naysay as ns
        >>> pool = ns.pools.Everything(ns.Positives.from_pairs([0, 1], [9, 8], n_items=10))
        >>> hardest = Dynamic(pool, score=lambda anchors, ids: ids * 1.0, candidates=9)
        >>> hardest.sample(ns.Query([0, 1]), 3, rng=ns.rng_for(0)).ids.tolist()
        [[8, 7, 6], [9, 7, 6]]
    """

    temperature: Any = 0.0
    _: KW_ONLY
    ceiling: Any = None
    top_m: Any = None

    def __post_init__(self) -> None:
        self._check_parts(all_candidates=True)
        self._temperature = number("temperature", self.temperature, at_least=0, finite=True)
        self._ceiling = number("ceiling", self.ceiling, optional=True, above=0, at_most=1)
        self._top_m = whole("top_m", self.top_m, optional=True)
        if _constant(self._count, self._temperature, self._ceiling, self._top_m):
            self._settings_at(0)

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives: the highest score first; with a temperature or top_m, the first drawn first."""
        check_query(query)
        temperature, ceiling, top_m = self._settings_at(query.step)
        scored = self._draw_scored(query, k, rng, top_m=top_m)
        if ceiling is not None:
            share = _softmax(scored.scores / temperature, scored.filled)
            scored = scored.only(share <= ceiling)
        return scored.take_top(temperature, top_m, rng)

    def _settings_at(self, step: int) -> tuple[float, float | None, int | None]:
        """The temperature, the ceiling and top_m at a step, checked against each other."""
        temperature, ceiling, top_m = self._temperature(step), self._ceiling(step), self._top_m(step)
        if ceiling is not None and temperature == 0:
            raise_invalid("ceiling", "left out without a `temperature`", ceiling, "It bounds a probability.")
        _check_softened(temperature, top_m)
        _check_at_most({"candidates": self._count(step), "top_m": top_m})
        return temperature, ceiling, top_m


@final
@public
@dataclass(eq=False, repr=False)
class NearPositive(_ScoreAndChoose):
    """Draw candidates, score them against the row's positive, and take the k nearest, or k at random of those near.

    The query must have positives, except for triples. The limit is applied before the M nearest are taken; slots for
    which only candidates above it were left are counted as {"too close": n}.

    Max sampling: Rao, He, Lin. Noise-Contrastive Estimation for Answer Selection. CIKM 2016, the k nearest. Two-stage:
    Tran, Hennequin, Royo-Letelier, Moussallam. Improving Collaborative Metric Learning with Efficient Negative
    Sampling. SIGIR 2019, candidates by popularity, then by the positive. Epsilon-truncated: Sun, Hu, Zhang, Qu.
    Bootstrapping Entity Alignment. IJCAI 2018, top_m = ceil((1 - epsilon) N), uniform, with N = candidates.

    Args:
        pool: Where candidates come from.
        score: score(positives (B,), ids (B, n)) -> (B, n), the similarity of two items. Of triples the positive is the
            entity that a candidate replaces; it is called once for each side.
        candidates: How many to draw.
        temperature: 0 takes the k nearest; above 0 as in `Dynamic`.
        top_m: If given, k are drawn uniformly from the top_m nearest.
        limit: If given, candidates with a higher score are left out, as too similar to the positive.
        first: A first stage by the anchor: a score as in `Dynamic`.
        shortlist: How many of the highest by `first` go on to the second stage, by the positive.
        on_short: "pad" or "raise".

    Examples:
        >>> import naysay as ns
        >>> pool = ns.pools.Everything(ns.Positives.from_pairs([0], [6], n_items=10))
        >>> sampler = NearPositive(pool, lambda positives, ids: -abs(positives[:, None] - ids) * 1.0, 9, limit=-2.0)
        >>> sampler.sample(ns.Query([0], positives=[6]), 2, rng=ns.rng_for(0)).scores.tolist()
        [[-2.0, -2.0]]
    """

    _made_of = ("pool", "score", "first")

    temperature: Any = 0.0
    _: KW_ONLY
    top_m: Any = None
    limit: Any = None
    first: Score | None = None
    shortlist: Any = None

    def __post_init__(self) -> None:
        self._check_parts()
        check_function("first", self.first, "score(anchors, ids)", optional=True)
        if (self.first is None) != (self.shortlist is None):
            raise_invalid("shortlist", "given with `first`, and only then", shown(self.shortlist))
        self._temperature = number("temperature", self.temperature, at_least=0, finite=True)
        self._top_m = whole("top_m", self.top_m, optional=True)
        self._limit = number("limit", self.limit, optional=True, finite=True)
        self._shortlist = whole("shortlist", self.shortlist, optional=True)
        if _constant(self._count, self._temperature, self._top_m, self._shortlist):
            self._settings_at(0)

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives: the nearest first; with a temperature or top_m, the first drawn first."""
        check_query(query)
        temperature, top_m, shortlist = self._settings_at(query.step)
        if query.anchors.ndim == 1:
            partners(query)  # raises before the draw if the query has no positives
        scored = self._draw_scored(query, k, rng, top_m=top_m, shortlist=shortlist)
        limit = self._limit(query.step)
        below_limit = scored.filled if limit is None else scored.filled & (scored.scores <= limit)
        answer = scored.only(below_limit).take_top(temperature, top_m, rng)
        return replace(answer, dropped=scored.empty_by_reason(below_limit, "too close"))

    def _with_scores(self, query: Query, drawn: Negatives) -> tuple[Negatives, Array]:
        """The candidates that pass the first stage, and how similar they are to the positive."""
        if self.first is not None:
            width = min(self._shortlist(query.step), drawn.shape[1])
            order = top(score_slots(self.first, query, drawn.ids, drawn.side), width)
            choice = order, gather(drawn.ids >= 0, order)
            drawn = take(drawn, choice, np.full(len(query), width), width, "pad")
        return drawn, positive_similarity(self.score, query, drawn)

    def _settings_at(self, step: int) -> tuple[float, int | None, int | None]:
        """The temperature, top_m and the shortlist at a step, checked against each other."""
        temperature, top_m, shortlist = self._temperature(step), self._top_m(step), self._shortlist(step)
        _check_at_most({"candidates": self._count(step), "shortlist": shortlist, "top_m": top_m})
        _check_softened(temperature, top_m)
        return temperature, top_m, shortlist


# ---- scores in a band, or near a target -----------------------------------------------------------------


@final
@public
@dataclass(eq=False, repr=False)
class SemiHard(_ScoreAndChoose):
    """Draw candidates, and take k of those whose score lies in the band s_p - margin < s_n < s_p.

    In distances the band is d_ap < d_an < d_ap + margin: pass score = -distance, squared for FaceNet's. Both ends are
    excluded, so a copy of the positive is never semi-hard. `dropped` counts {"not semi-hard": n}: slots for which the
    band had no candidate, whether `otherwise` filled them or not.

    Schroff, Kalenichenko, Philbin. FaceNet. CVPR 2015, which takes any of the band (choose="random"); it does not say
    what happens in a row without one. pytorch-metric-learning's "semihard" of BatchEasyHardMiner is margin=inf,
    choose="hardest", otherwise="pad"; TensorFlow Addons falls back to the lowest score of all instead.

    Args:
        pool: Where candidates come from.
        score: As in `Dynamic`; also of each row's positive.
        candidates: How many to draw and score.
        margin: Above 0, in units of the score; numpy.inf takes everything that is farther than the positive.
        choose: "hardest" takes the k highest of the band, "random" any k of it.
        otherwise: What fills a row whose band has fewer than k. "pad": nothing. "easy": those below the band, the
            nearest first. "hardest": any of the others, the highest first, also those above the positive.
        on_short: "pad" or "raise".

    Examples:
        >>> import naysay as ns
        >>> pool = ns.pools.Everything(ns.Positives.from_pairs([0], [6], n_items=10))
        >>> sampler = SemiHard(pool, score=lambda anchors, ids: ids * 1.0, candidates=9, margin=3.0)
        >>> negatives = sampler.sample(ns.Query([0], positives=[6]), 3, rng=ns.rng_for(0))
        >>> negatives.ids.tolist(), negatives.dropped
        ([[5, 4, -1]], {'not semi-hard': 1})
    """

    margin: Any
    _: KW_ONLY
    choose: str = "hardest"
    otherwise: str = "pad"

    def __post_init__(self) -> None:
        self._check_parts()
        check_one_of("choose", self.choose, ("hardest", "random"))
        check_one_of("otherwise", self.otherwise, ("pad", "easy", "hardest"))
        self._margin = number("margin", self.margin, above=0)

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives, those of the band first."""
        check_query(query)
        margin = self._margin(query.step)
        scored = self._draw_scored(query, k, rng, with_positive=True)
        below_positive = scored.filled & (scored.scores < scored.positive)
        in_band = below_positive & (scored.scores > scored.positive - margin)
        if self.choose == "random":
            choice = pick_any(in_band, scored.width, key_from(rng), scored.scores)
        else:
            choice = pick(scored.scores, in_band, scored.width)
        if self.otherwise != "pad":
            others = (below_positive if self.otherwise == "easy" else scored.filled) & ~in_band
            choice = one_after_other(choice, pick(scored.scores, others, scored.width))
        return replace(scored.take(choice), dropped=scored.empty_by_reason(in_band, "not semi-hard"))


@final
@public
@dataclass(eq=False, repr=False)
class NearTarget(_ScoreAndChoose):
    """Draw and score candidates, and take those whose score is nearest to a target: neither hardest nor easiest.

    With sharpness=None the k nearest are taken; with a number a, k are drawn without repeats by weights
    exp(-a (score - target)^2).

    Zhou et al. SimANS: Simple Ambiguous Negatives Sampling for Dense Text Retrieval. EMNLP 2022: the target is s + b,
    with sharpness a, for the positive's score s; its code flips the sign of b. Lai et al. Adaptive Hardness Negative
    Sampling for Collaborative Filtering. AAAI 2024: the target is beta / (s + alpha), so that the surer the positive,
    the easier the negative; keep s + alpha above 0.

    Args:
        pool: Where candidates come from.
        score: As in `Dynamic`; also of each row's positive.
        candidates: How many to draw and score.
        target: target(scores of the positives (B,), step) -> (B,), in the query's array type.
        sharpness: None, or at least 0, which takes any candidates.
        on_short: "pad" or "raise".

    Examples:
        >>> import naysay as ns
        >>> pool = ns.pools.Everything(ns.Positives.from_pairs([0], [5], n_items=10))
        >>> near = NearTarget(pool, lambda anchors, ids: ids * 1.0, candidates=9, target=lambda own, step: own - 2.2)
        >>> near.sample(ns.Query([0], positives=[5]), 3, rng=ns.rng_for(0)).ids.tolist()
        [[3, 2, 4]]
    """

    target: Callable[[Array, int], Array]
    _: KW_ONLY
    sharpness: Any = None

    def __post_init__(self) -> None:
        self._check_parts()
        check_function("target", self.target, "target(positive_scores, step)")
        self._sharpness = number("sharpness", self.sharpness, optional=True, at_least=0, finite=True)

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives: the nearest to the target first; with a sharpness, the first drawn first."""
        check_query(query)
        sharpness = self._sharpness(query.step)
        scored = self._draw_scored(query, k, rng, with_positive=True)
        target = self.target(scored.positive[:, 0], query.step)
        check_returned("target", target, scored.scores, (len(query),))
        away = where(scored.filled, scored.scores, 0.0) - of_kind(target, scored.scores)[:, None]
        nearness = where(scored.filled, -away * away if sharpness is None else -sharpness * away * away, -np.inf)
        return scored.highest(nearness if sharpness is None else softened(nearness, 1.0, rng))


# where(query, ids (B, n)) -> (B, n) bool; of triples where(query, corrupted (B, n, 3))
Where = Callable[[Query, Array], Array]
_ROUNDING_OF_PLACES = 1e-9  # (1 - 0.9) * 10 is 0.9999999999999998, which must count as 1


@final
@public
@dataclass(eq=False, repr=False)
class PercentileRange(_ScoreAndChoose):
    """Draw and score candidates, keep or remove a percentile interval of them, and take k of the rest at random.

    The m candidates of a row are sorted by score, the hardest at place 0, ties in the order of the draw. The interval
    (low, high) are the places floor((1 - high) m) to floor((1 - low) m), the last excluded. So the hardest share x is
    floor(x m) candidates (0.1 % of fewer than 1,000 is none), and adjacent intervals neither share a candidate nor
    leave one out. `dropped` counts the candidates that were cut, as "outside the range".

    Cai, Frankle, Schwab, Morcos. Are All Negatives Created Equal in Contrastive Instance Discrimination? 2020 (hard is
    (0.95, 1.0), the very hardest (0.999, 1.0)); Wu, Mosse, Zhuang, Yamins, Goodman. Conditional Negative Sampling for
    Contrastive Learning of Visual Representations. ICLR 2021 (Ring, an interval that closes in during training).

    Args:
        pool: Where candidates come from.
        score: As in `Dynamic`.
        candidates: How many to draw and score; None as in `Dynamic`.
        keep: (low, high) in [0, 1]: only this interval of difficulty stays; 1.0 is the hardest. The interval or its
            ends may be functions of the step.
        remove: (low, high): this interval is removed, and the rest stays. Give either `keep` or `remove`.
        where: where(query, ids (B, n)) -> (B, n) bool in the query's array type (same class, other class): restricts
            the interval to the candidates for which it holds. Of triples where(query, corrupted (B, n, 3)).
        on_short: "pad" or "raise".

    Examples:
        >>> import numpy as np, naysay as ns
        >>> pool = ns.pools.Everything(ns.Positives.from_pairs([0], [9], n_items=21))
        >>> hard = PercentileRange(pool, lambda anchors, ids: ids * 1.0, candidates=20, keep=(0.8, 0.95))
        >>> np.sort(hard.sample(ns.Query([0]), 3, rng=ns.rng_for(0)).ids).tolist()    # without the hardest in twenty
        [[17, 18, 19]]
    """

    _: KW_ONLY
    keep: Any = None
    remove: Any = None
    where: Where | None = None

    def __post_init__(self) -> None:
        self._check_parts(all_candidates=True)
        check_function("where", self.where, "where(query, ids)", optional=True)
        if (self.keep is None) == (self.remove is None):
            got = "neither" if self.keep is None else "both"
            raise_invalid("keep", "given, or `remove`, but not both", got, "Write keep=(0.9, 1.0).")
        self._interval = self.keep if self.remove is None else self.remove
        ends = self._interval if isinstance(self._interval, tuple | list) else ()
        if not any(map(callable, (self._interval, *ends))):
            self._interval_at(0)

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives in random order."""
        check_query(query)
        low, high = self._interval_at(query.step)
        scored = self._draw_scored(query, k, rng)
        by_difficulty = _hardest_first(scored.scores)
        filled = gather(scored.filled, by_difficulty)
        inside = filled & _within(filled, low, high)
        if self.where is not None:
            inside = inside & gather(self._holds(query, scored.candidates), by_difficulty)
        eligible = inside if self.remove is None else filled & ~inside
        places, kept = pick_any(eligible, scored.width, key_from(rng), scored.scores)
        answer = scored.take((gather(by_difficulty, places), kept))
        n_outside = int((filled & ~eligible).sum())
        outside = {"outside the range": n_outside} if n_outside else {}
        return replace(answer, dropped={**answer.dropped, **outside})

    def _interval_at(self, step: int) -> tuple[float, float]:
        """(low, high) at a step."""
        pair = at_step(self._interval, step)
        if isinstance(pair, tuple | list):
            pair = tuple(at_step(end, step) for end in pair)
        return check_interval("keep" if self.remove is None else "remove", pair, "<", "1.0 is the hardest.")

    def _holds(self, query: Query, drawn: Negatives) -> Array:
        """(B, n) bool: what the user's function returns. It never gets -1."""
        ids = drawn.ids.clip(min=0)
        if drawn.side is not None:
            ids = corrupted_triples(query.anchors, ids, drawn.side)
        mask = self.where(query, ids) if self.where is not None else None
        check_returned("where", mask, drawn.ids, tuple(drawn.ids.shape), boolean=True)
        return mask


def _hardest_first(scores: Array) -> Array:
    """(B, n) slots by score, highest first, of equal ones the earlier first; empty slots last."""
    if is_torch(scores):
        return scores.argsort(dim=1, descending=True, stable=True)
    return np.argsort(-scores, axis=1, kind="stable")


def _within(filled: Array, low: float, high: float) -> Array:
    """(B, n): whether a place, the hardest at 0, lies in the interval of its row; filled slots come first."""
    n_candidates = np.arange(filled.shape[1] + 1)
    first = np.floor((1.0 - high) * n_candidates + _ROUNDING_OF_PLACES).astype(np.int64)
    end = np.floor((1.0 - low) * n_candidates + _ROUNDING_OF_PLACES).astype(np.int64)
    place = np.arange(filled.shape[1])
    if is_torch(filled):
        first, end, place = (to_torch(array, filled.device) for array in (first, end, place))
    count = filled.sum(1)
    return (place >= first[count][:, None]) & (place < end[count][:, None])


# ---- spread over all distances --------------------------------------------------------------------------

_ROUNDING_OF_COSINES = 1e-3  # how far a cosine of rounded unit vectors may lie outside [-1, 1]


@final
@public
@dataclass(eq=False, repr=False)
class DistanceWeighted(_ScoreAndChoose):
    """Draw candidates, and take k of them without repeats, each with weight 1 / q(D) of its distance D.

    Points that are uniform on the unit sphere lie at distance D from an anchor with density q(D). With
    D^2 = 2 - 2 cosine and D >= cutoff the weights are

        log 1/q(D) = (2 - d) log D - (d - 3)/2 log(1 - D^2 / 4)

    so that the distances of the chosen ones are spread evenly between the two cutoffs. Slots for which no candidate was
    near enough are counted as {"too far": n}.

    Wu, Manmatha, Smola, Krahenbuhl. Sampling Matters in Deep Embedding Learning. ICCV 2017. The paper bounds 1 / q by a
    number; its code bounds the distance instead, at 0.5 and 1.4, and so do we. A row with nothing near enough stays
    empty, where its code falls back to uniform draws.

    Args:
        pool: Where candidates come from.
        score: As in `Dynamic`, but the cosine of unit vectors, in [-1, 1].
        candidates: How many to draw and score.
        dim: d, the dimension of the vectors, at least 2.
        cutoff: Smaller distances get the weight of this one, because the nearest are noisy.
        nonzero_loss_cutoff: This and larger distances get weight 0, because their loss is 0. At most 2.
        on_short: "pad" or "raise".

    Examples:
        >>> import numpy as np, naysay as ns
        >>> pool = ns.pools.Everything(ns.Positives.from_pairs([0], [0], n_items=9))
        >>> sampler = DistanceWeighted(pool, lambda anchors, ids: np.cos(ids * np.pi / 8), candidates=8, dim=2)
        >>> sorted(sampler.sample(ns.Query([0]), 3, rng=ns.rng_for(0)).ids[0].tolist())    # up to a right angle
        [1, 2, 3]
    """

    dim: int
    cutoff: Any = 0.5
    nonzero_loss_cutoff: Any = 1.4

    def __post_init__(self) -> None:
        self._check_parts()
        self.dim = check_whole("dim", self.dim, 2)
        self._cutoff = number("cutoff", self.cutoff, above=0, below=2)
        self._farthest = number("nonzero_loss_cutoff", self.nonzero_loss_cutoff, above=0, at_most=2)
        if _constant(self._cutoff, self._farthest):
            self._cutoffs_at(0)

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives, the first drawn first."""
        check_query(query)
        cutoff, farthest = self._cutoffs_at(query.step)
        scored = self._draw_scored(query, k, rng)
        no_cosine = scored.filled & (abs(scored.scores) > 1 + _ROUNDING_OF_COSINES)
        if no_cosine.any():  # most likely because vectors were not normalised
            got = first_bad(to_numpy(scored.scores), to_numpy(no_cosine))
            rule = "a function that returns cosines, within [-1, 1]"
            raise_invalid("score", rule, got, "Normalise the vectors first.")
        squares = (2 - 2 * scored.scores).clip(min=cutoff**2)
        near_enough = scored.filled & (squares < farthest**2)
        inside = squares.clip(max=farthest**2 * (1 - 1e-6))
        log = module_of(inside).log
        log_weights = (2 - self.dim) / 2 * log(inside) - (self.dim - 3) / 2 * log(1 - inside / 4)
        noise = gumbel(tuple(squares.shape), key_from(rng), scored.scores)
        answer = scored.take(pick(log_weights + noise, near_enough, scored.width))
        return replace(answer, dropped=scored.empty_by_reason(near_enough, "too far"))

    def _cutoffs_at(self, step: int) -> tuple[float, float]:
        cutoff, farthest = self._cutoff(step), self._farthest(step)
        if farthest <= cutoff:
            raise_invalid("nonzero_loss_cutoff", f"above `cutoff`, {cutoff:g}", farthest)
        return cutoff, farthest


# ---- weights --------------------------------------------------------------------------------------------


@final
@public
@dataclass(eq=False, repr=False)
class Warp(_ScoresCandidates):
    """Draw candidates one by one until one violates the margin, s_n > s_p - margin; the sooner, the higher its weight.

    A negative that took t trials, of n items in all, has weight L(floor((n - 1) / t)), L(r) = 1 + 1/2 + ... + 1/r, for
    losses.hinge(..., weights=...). Each of the k negatives is the next violator, and t counts the trials since the
    previous one: with independent draws they are k WARP steps that share the trials. floor((n - 1) / t) estimates the
    rank of the positive; the estimate is too high on average, which is the paper's method. All trials are drawn and
    scored at once. Slots without a violator stay empty and are counted as {"no violator": n}.

    Weston, Bengio, Usunier. WSABIE. IJCAI 2011. lightfm's code weighs by log(max(1, floor((n - 1) / t))), at most 10,
    draws from all items, and counts a known positive as a failed trial; here the pool never draws one.

    Args:
        pool: Where candidates come from. The paper draws independently: distinct=False.
        score: As in `Dynamic`; also of each row's positive.
        trials: The maximum number of candidates per row.
        margin: How far below the positive a negative should stay, in units of the score.
        n_items: n; by default that of the pool's positives.
        on_short: "pad" or "raise".

    Examples:
        >>> import naysay as ns
        >>> pool = ns.pools.Everything(ns.Positives.from_pairs([0], [2], n_items=10), distinct=False)
        >>> warp = Warp(pool, score=lambda anchors, ids: ids * 1.0, trials=6)
        >>> negatives = warp.sample(ns.Query([0], positives=[2]), 1, rng=ns.rng_for(0))
        >>> bool(negatives.ids[0, 0] > 1), negatives.weights.shape
        (True, (1, 1))
    """

    pool: Pool
    score: Score
    trials: Any
    margin: Any = 1.0
    _: KW_ONLY
    n_items: Any = None
    on_short: str = "pad"

    def __post_init__(self) -> None:
        self._check_parts("trials")
        if self.n_items is None:
            self.n_items = getattr(getattr(self.pool, "positives", None), "n_items", None)
        if self.n_items is None:
            advice = "Pass how many items there are: the weight of a rank depends on it."
            raise_invalid("n_items", "given for a pool without positives", None, advice)
        self.n_items = check_whole("n_items", self.n_items, 1)
        self._margin = number("margin", self.margin, at_least=0, finite=True)

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives with `weights`, in the order of trials."""
        from scipy.special import digamma

        check_query(query)
        margin = self._margin(query.step)
        scored = self._draw_scored(query, k, rng, with_positive=True)
        violates = scored.filled & (scored.scores > scored.positive - margin)
        trial = scored.filled.cumsum(1)  # a slot that the pool left empty is not a trial
        ranks = (self.n_items - 1) // np.arange(1, scored.scores.shape[1] + 1)
        harmonic = digamma(ranks + 1.0) + np.euler_gamma  # 1 + 1/2 + ... + 1/rank
        weight_of_trials = of_type(np.concatenate([[0.0], harmonic]), scored.scores)
        weights = weight_of_trials[_trials_since_last(trial, violates)]
        weighted = replace(scored, candidates=replace(scored.candidates, weights=weights))
        answer = weighted.take(pick(trial * -1.0, violates, scored.width))
        return replace(answer, dropped=scored.empty_by_reason(violates, "no violator"))


def _trials_since_last(trial: Array, violates: Array) -> Array:
    """(B, n) the number of trials since the last violator before a slot, or since the start."""
    ends = trial * violates
    if is_torch(trial):
        torch = need_torch()
        before = torch.nn.functional.pad(torch.cummax(ends, dim=1).values[:, :-1], (1, 0))
    else:
        before = np.pad(np.maximum.accumulate(ends, axis=1)[:, :-1], ((0, 0), (1, 0)))
    return trial - before


@final
@public
@dataclass(eq=False, repr=False)
class SoftmaxWeights(FromPool):
    """Take k candidates as the pool draws them, with weights that are a softmax of how hard they are, of sum 1 per row.

    All that is drawn is scored and used. The weights carry no gradient, so losses.bpr(positive, scores, weights=...) is
    sum_j w_j Z_j. The variance is over the row's candidates, divided by their number; if all are equally hard, the
    weights are equal. log_q is the pool's and exact.

    Shi, Chen, Feng, Zhang, Wu, Gao, He. On the Theories Behind Hard Negative Sampling for Recommendation. WWW 2023;
    AdaSIR: Chen, Lian, Li, Jin, Zheng, Chen. Learning Recommenders for Implicit Feedback with Importance Resampling.
    WWW 2022, which resamples by these weights. It writes s_j - s_p, which is the same: a row has one positive.

    Args:
        pool: Where candidates come from.
        score: As in `Dynamic`; with `rho` also of each row's positive.
        rho: Above 0: about the Kullback-Leibler divergence of the weights from equal ones. Softmax(rho, N): Z_j =
            -log sigmoid(s_p - s_j), tau = sqrt(Var_j(Z) / (2 rho)), w = softmax(Z / tau - log q).
        temperature: Above 0, in place of `rho`. AdaSIR: w = softmax(s / temperature - log q).
        correct: Whether more likely draws get less weight, by log q. It needs a pool of independent draws
            (distinct=False) with log_q. With False, log q is left out, for any pool.

    Examples:
        >>> import naysay as ns
        >>> pool = ns.pools.Everything(ns.Positives.from_pairs([0], [9], n_items=10), distinct=False)
        >>> sampler = SoftmaxWeights(pool, lambda anchors, ids: ids * 1.0, rho=0.5)
        >>> sampler.sample(ns.Query([0], positives=[9]), 4, rng=ns.rng_for(0)).weights.sum(axis=1).round(6).tolist()
        [1.0]
    """

    pool: Pool
    score: Score
    rho: Any = None
    _: KW_ONLY
    temperature: Any = None
    correct: bool = True

    def __post_init__(self) -> None:
        check_pool(self.pool)
        check_score(self.score)
        if (self.rho is None) == (self.temperature is None):
            got = "neither" if self.rho is None else "both"
            raise_invalid("rho", "given, or `temperature` in its place", got)
        check_bool("correct", self.correct)
        if self.correct and self.distinct is True:
            advice = "Make it with distinct=False, or pass correct=False: log_q of a distinct row is that of a slot."
            raise_invalid("pool", "one of independent draws", "distinct=True", advice)
        name = "temperature" if self.rho is None else "rho"
        self._number = number(name, getattr(self, name), above=0, finite=True)

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives with `weights`."""
        check_query(query)
        positive = None if self.rho is None else positive_scores(self.score, query)[:, None]
        drawn = draw_k(self.pool, query, k, rng).like(query)
        if self.correct and drawn.log_q is None:
            advice = "Pass correct=False to leave it out."
            raise_invalid("pool", "one with an exact log_q", type(self.pool).__name__, advice)
        filled = drawn.ids >= 0
        scores = where(filled, candidate_scores(self.score, query, drawn), 0.0)
        rho_or_temperature = self._number(query.step)
        if positive is None:
            logits = scores / rho_or_temperature
        else:
            logits = _hardness(scores - positive, filled, rho_or_temperature)
        if self.correct:
            logits = logits - drawn.log_q
        return replace(drawn, scores=scores, weights=_softmax(logits, filled))


def _hardness(above: Array, filled: Array, rho: float) -> Array:
    """(B, n) (Z - mean) / tau of Z = log(1 + exp(s_n - s_p)); 0 where all candidates of a row are equally hard."""
    z = -need_torch().nn.functional.logsigmoid(-above) if is_torch(above) else np.logaddexp(0, above)
    count = filled.sum(1)[:, None].clip(min=1)
    z = where(filled, z, 0.0)
    away = where(filled, z - z.sum(1)[:, None] / count, 0.0)
    tau = ((away**2).sum(1)[:, None] / count / (2 * rho)) ** 0.5
    return away / where(tau > 0, tau, 1.0)
