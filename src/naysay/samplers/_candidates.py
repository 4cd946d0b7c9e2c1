"""What every sampler begins with: its settings at a step, candidates of its pool, and their scores."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from naysay._slots import EMPTY, PER_SLOT, Score, check_score, gather, partners, score_slots, where
from naysay.arrays import is_torch, module_of, to_numpy
from naysay.checks import check_kind, check_number, check_one_of, check_whole, is_number, raise_invalid, shown
from naysay.errors import NaysayWarning
from naysay.pools._slots import ON_SHORT, slot_counts
from naysay.pools.in_batch import InBatch
from naysay.pools.memory import Memory
from naysay.positives import Positives
from naysay.quantity.schedules import at_step, slots
from naysay.rng import key_from
from naysay.samplers._top_k import Choice, pick, pick_any, reasons, softened, take, take_highest
from naysay.samplers.stored_vectors import StoredVectors
from naysay.text import counted, described
from naysay.types import HEAD, RELATION, SIDES, Array, MadeOf, Negatives, Pool, Query, check_query


class FromPool(MadeOf):
    """What samplers of one pool share."""

    _made_of: ClassVar[tuple[str, ...]] = ("pool", "score")
    pool: Pool

    @property
    def distinct(self) -> bool | None:
        """Whether a row has each id once: the pool's, which a choice keeps; None if it does not say."""
        return getattr(self.pool, "distinct", None)

    def __repr__(self) -> str:
        return described(self)


class Independent:
    """What samplers share whose slots are drawn one by one, so that a row may have an id twice."""

    @property
    def distinct(self) -> bool:
        """False: draws are independent, or the states of a chain."""
        return False

    def __repr__(self) -> str:
        return described(self)


# ---- settings -------------------------------------------------------------------------------------------


def check_known(positives: object, on_short: str) -> None:
    """Raise unless a sampler that draws by itself knows what to leave out, and what to do if nothing is left."""
    check_kind("positives", positives, Positives, "a Positives")
    check_one_of("on_short", on_short, ON_SHORT)


def check_is_pool(pool: object) -> None:
    """Raise if `pool` has no draw, or is a pool's class instead of a pool."""
    rule = "a pool, with a method draw(query, n, *, rng)"
    if isinstance(pool, type):
        raise_invalid("pool", rule, f"the class {pool.__name__}", "Make one first, and pass that.")
    check_kind("pool", pool, Pool, rule)


def check_parts(pool: object, score: object, on_short: object) -> None:
    """Raise if one of the three arguments that all samplers of scored candidates take is invalid."""
    check_is_pool(pool)
    check_score(score)
    check_one_of("on_short", on_short, ON_SHORT)


def whole_at(parameter: str, value: Any, step: int | None, *, optional: bool = False) -> Any:
    """The whole number of at least 1 that a setting has at a step.

    A setting is a value or a function of the step. A constructor passes step=None: then a function is not called, and
    the result is None. With `optional`, None is valid, too.
    """
    now = _at(value, step)
    return None if now is None and (optional or _unknown(value, step)) else check_whole(parameter, now, 1)


def number_at(parameter: str, value: Any, step: int | None, *, optional: bool = False, **bounds: Any) -> Any:
    """The same for a number within the bounds of `check_number`."""
    now = _at(value, step)
    return None if now is None and (optional or _unknown(value, step)) else check_number(parameter, now, **bounds)


def interval_at(parameter: str, value: Any, step: int | None, least: int = 0) -> Any:
    """The same for an interval (low, high) within [least, 1], from which a mixing share is drawn."""
    return None if _unknown(value, step) else check_interval(parameter, _at(value, step), "<=", least=least)


def check_interval(
    parameter: str, interval: Any, relation: str, advice: str = "", least: int = 0
) -> tuple[float, float]:
    """Return (low, high) as floats, or raise if they are not two numbers in [least, 1] with low < or <= high."""
    if isinstance(interval, tuple | list) and len(interval) == 2 and all(map(is_number, interval)):
        low, high = map(float, interval)
        if least <= low <= high <= 1 and (relation == "<=" or low < high):
            return low, high
    raise_invalid(parameter, f"a pair (low, high) with {least} <= low {relation} high <= 1", shown(interval), advice)


def _at(value: Any, step: int | None) -> Any:
    return None if _unknown(value, step) else at_step(value, 0 if step is None else step)


def _unknown(value: Any, step: int | None) -> bool:
    return step is None and callable(value)


def step_of(query: Query) -> int:
    """The step of a query. Raises if it is not a Query but, most likely, a bare array of anchors."""
    check_query(query)
    return query.step


# ---- draws ----------------------------------------------------------------------------------------------


def draw_k(pool: Pool, query: Query, k: Any, rng: np.random.Generator) -> Negatives:
    """(B, K) candidates of the pool. K is ceil(k) for one k, even if no row got that many; else the largest."""
    check_query(query)
    wanted = slots(k, len(query), rng)
    drawn = pool.draw(query, wanted, rng=rng)
    if isinstance(wanted, int) or np.ndim(to_numpy(k)) == 1:
        return drawn
    return _widened(drawn.numpy(), int(np.ceil(float(k))))


def _widened(drawn: Negatives, width: int) -> Negatives:
    """The same with empty slots on the right, up to `width`."""
    more = width - drawn.shape[1]
    if more <= 0:
        return drawn
    wider: dict[str, Any] = {}
    for name in PER_SLOT:
        array = getattr(drawn, name)
        if array is not None:
            margins = [(0, more) if axis == 1 else (0, 0) for axis in range(array.ndim)]
            wider[name] = np.pad(array, margins, constant_values=EMPTY.get(name, 0))
    return replace(drawn, **wider)


def wanted_slots(k: Any, rows: int, rng: np.random.Generator, **limits: int | None) -> tuple[NDArray[np.int64], int]:
    """K of each row (B,), and K: ceil(k) for one k, else the largest. Raises if K is above one of the named limits."""
    counts, width = slot_counts(slots(k, rows, rng), rows)
    width = max(width, int(np.ceil(float(to_numpy(k))))) if np.ndim(to_numpy(k)) == 0 else width
    for name, limit in limits.items():
        if limit is not None and width > limit:
            raise_invalid("k", f"at most `{name}`, {limit}", shown(k))
    return counts, width


_WARNED: weakref.WeakSet[Any] = weakref.WeakSet()  # samplers that have warned of too few candidates


def warn_of_few(sampler: object, width: int, level: int = 4, **candidates: int | None) -> None:
    """Warn, once for each sampler, that it chooses K slots from fewer candidates, so that some stay empty.

    `level` is how many calls above this function, with the decorator of `sample`, the user's line is.
    """
    for name, number in candidates.items():
        if number is not None and number < width and sampler not in _WARNED:
            _WARNED.add(sampler)
            text = (
                f"{type(sampler).__name__}: `{name}` must be at least k to fill all slots, got {number} for k {width}. "
                f"{counted(width - number, 'slot')} of each row will be empty. Set {name} to {width} or more."
            )
            warnings.warn(text, NaysayWarning, stacklevel=level)


def candidates_of(pool: Pool, query: Query, n: Any, rng: np.random.Generator) -> Negatives:
    """(B, n) candidates of the pool in the query's array type; with n=None all that a memory or batch has.

    A pool may have draw_candidates(query, n, *, rng) beside draw: the same without log_q, which no choice can keep.
    """
    check_query(query)
    if n is None and not isinstance(pool, InBatch | Memory):
        raise_invalid("candidates", "a number unless the pool is Memory or InBatch", None)
    if n is not None:
        check_whole("candidates", n, 1)
    draw: Callable[..., Negatives] = getattr(pool, "draw_candidates", pool.draw)
    drawn = draw(query, n, rng=rng)
    if drawn.shape[1] == 0:  # an empty memory: a slot to choose from, which is empty
        drawn = draw(query, 1, rng=rng)
    return drawn.like(query)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """Scored candidates, and how many of them to take."""

    drawn: Negatives  # (B, n), in the query's array type
    scores: Array  # (B, n), -inf in empty slots
    counts: NDArray[np.int64]  # (B,) k of each row
    width: int  # K of the answer
    positive: Array = None  # (B, 1) the score of each row's positive

    @property
    def filled(self) -> Array:
        """(B, n) bool: which slots hold a candidate."""
        return self.drawn.ids >= 0

    def below(self, ceiling: float, temperature: float) -> Scored:
        """The same without candidates whose softmax(scores / temperature) in their row is above the ceiling."""
        logits = self.scores / temperature
        top = logits.max(1).values if is_torch(logits) else logits.max(axis=1, initial=-np.inf)
        weights = module_of(logits).exp(logits - where(top > -np.inf, top, 0.0)[:, None])
        low = weights <= ceiling * weights.sum(1)[:, None]
        return replace(
            self,
            drawn=replace(self.drawn, ids=where(low, self.drawn.ids, -1)),
            scores=where(low, self.scores, -np.inf),
        )

    def take_top_k(self, on_short: str, top_m: int | None, temperature: float, rng: np.random.Generator) -> Negatives:
        """The top k of each row, k uniformly from the top m, or k without repeats from softmax(scores / temperature).

        The highest come first at a temperature of 0, else the first drawn.
        """
        if top_m is None:
            values = softened(self.scores, temperature, rng)
            return take_highest(self.drawn, values, self.counts, self.width, on_short, self.scores)
        highest, kept = pick(self.scores, self.scores > -np.inf, top_m)
        place, kept = pick_any(kept, self.width, key_from(rng), self.scores)
        return take(self.drawn, gather(highest, place), kept, self.counts, self.width, on_short, self.scores)

    def take(self, choice: Choice, on_short: str, reason: str, fit: Array) -> Negatives:
        """The chosen slots; `dropped` counts empty ones by `reason` where a row has too few that are `fit` (B, n)."""
        answer = take(self.drawn, *choice, self.counts, self.width, on_short, self.scores)
        return replace(answer, dropped=reasons(reason, self.counts, self.drawn.ids, fit))


def scored_candidates(
    sampler: Any,
    query: Query,
    k: Any,
    rng: np.random.Generator,
    *,
    with_positive: bool = False,
    top_m: int | None = None,
    **candidates: int | None,
) -> Scored:
    """Draw candidates of a sampler's pool for each row of a query and score them by its score, to take k of them.

    Their number has the name of the sampler's setting, such as candidates=64. With `with_positive` each row's positive
    is scored, too, before the draw. K must not be above `top_m`.
    """
    pool, score = sampler.pool, sampler.score
    (n,) = candidates.values()
    counts, width = wanted_slots(k, len(query), rng, top_m=top_m)
    warn_of_few(sampler, width, level=5, **candidates)
    positive = positive_scores(score, query)[:, None] if with_positive else None
    drawn = candidates_of(pool, query, n, rng)
    return Scored(drawn, candidate_scores(score, query, drawn), counts, width, positive)


def candidate_scores(score: Score, query: Query, drawn: Negatives) -> Array:
    """(B, n) the scores of candidates, by the user's function or by their stored vectors; -inf in empty slots."""
    if isinstance(score, StoredVectors):
        return score._of_candidates(query, drawn)
    return score_slots(score, query, drawn.ids, drawn.side)


# ---- positives ------------------------------------------------------------------------------------------


def positive_scores(score: Score, query: Query) -> Array:
    """(B,) the score of each row's positive, without gradients: score(anchors, positives (B, 1)).

    A triple is its own positive, and is scored as it stands: score(triples (B, 3), triples (B, 1, 3)).
    """
    if isinstance(score, StoredVectors):
        return score._of_positives(query)
    if query.anchors.ndim == 1:
        return score_slots(score, query, partners(query)[:, None])[:, 0]
    heads = query.anchors[:, :1]
    heads = heads.long() if is_torch(heads) else heads.astype(np.int64)
    return score_slots(score, query, heads, heads * 0 + HEAD)[:, 0]


def positive_similarity(score: Score, query: Query, drawn: Negatives) -> Array:
    """(B, n) how similar each candidate is to what it replaces: score(positives (B,), ids (B, n)).

    That is the row's positive; for triples it is the part that the candidate replaces, and the function is called once
    for each side. It cannot tell relations from entities, so one pool must not replace both.
    """
    if drawn.side is None:
        return score_slots(score, Query(partners(query), step=query.step), drawn.ids)
    sides = sides_of(drawn)
    if RELATION in sides and len(sides) > 1:
        advice = "Make two pools, with a sampler each, and put them into Mixed."
        raise_invalid("pool", "one that replaces relations or entities", [SIDES[side] for side in sides], advice)
    similarity = None
    for side in sides:
        ids = drawn.ids + 0
        ids[drawn.side != side] = -1
        scores = score_slots(score, Query(query.anchors[:, side], step=query.step), ids)
        # Elsewhere it is -inf, so the larger of two is the one that was scored.
        similarity = scores if similarity is None else module_of(ids).maximum(similarity, scores)
    return similarity


def sides_of(drawn: Negatives) -> list[int]:
    """The sides that candidates of triples replace; the head if there is no candidate."""
    sides = np.asarray(to_numpy(drawn.side))[np.asarray(to_numpy(drawn.ids)) >= 0]
    return [int(side) for side in np.unique(sides)] or [HEAD]
