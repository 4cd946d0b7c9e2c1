"""Ring: keep or remove an interval of difficulty among an anchor's candidates, by the model's score now."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import is_torch, to_torch
from naysay.checks import check_one_of, check_whole, public, raise_invalid, shown
from naysay.pools._slots import ON_SHORT
from naysay.quantity.schedules import at_step
from naysay.rng import key_from
from naysay.samplers._choose import gather
from naysay.samplers._draw import check_is_pool
from naysay.samplers._pick import pick_any
from naysay.samplers._scored import (
    Score,
    candidates_of,
    check_score,
    corrupted_triples,
    score_slots,
    take,
    wanted_slots,
)
from naysay.types import Array, Negatives, Pool, Query, check_query

# where(query, ids (B, n)) -> (B, n) bool; of triples where(query, corrupted (B, n, 3))
Where = Callable[[Query, Array], Array]
OUTSIDE = "outside the ring"
_ROUNDING = 1e-9  # (1 - 0.9) * 10 is 0.9999999999999998: what a cut may miss and still be whole


@final
@public
class Ring:
    """Draw and score candidates, keep or remove those of a percentile interval, and take k of the rest at random.

    The interval may be a function of the step, and so may each of its ends and `candidates` (`Linear`): a curriculum.

    The one rule for intervals: the m candidates of a row stand by score, the hardest at place 0, of equal scores the
    earlier drawn first; (low, high) are places floor((1 - high) m) to floor((1 - low) m), the last not included. So the
    hardest share x is floor(x m) candidates (0.1 % of fewer than 1,000 is none), and intervals that meet share no
    candidate and leave none out. Percentiles are within the row, whatever the mask says.

    `dropped` counts the candidates that the cut left out, "outside the ring". `scores` (B, K) are those of the model;
    log_q is None, because the cut depends on them. The k are a uniform choice without repeats among what is left. Cost:
    the pool's draw, one call of score for (B, candidates), and a sort of each row.

    Cai, Frankle, Schwab, Morcos. Are All Negatives Created Equal in Contrastive Instance Discrimination? 2020 (hard is
    (0.95, 1.0), the very hardest (0.999, 1.0)); Wu, Mosse, Zhuang, Yamins, Goodman. Conditional Negative Sampling for
    Contrastive Learning of Visual Representations. ICLR 2021 (a ring that closes in as training goes on).

    Args:
        pool: Where candidates come from; it has excluded what is known.
        score: Score(anchors (B,), ids (B, n)) -> (B, n), higher is closer: any function of the model. On a pool of
            triples (`Corruption`) score(triples (B, 3), corrupted (B, n, 3)) -> (B, n).
        candidates: How many are drawn and scored for each anchor.
        keep: (low, high) in [0, 1]: only this interval of difficulty stays; 1.0 is the hardest.
        remove: (low, high): this interval goes, and the rest stays. One of the two is given.
        where: Where(query, ids (B, n)) -> (B, n) bool in the query's array type (same class, other class): cuts the
            interval down to the candidates for which it holds; keep keeps and remove removes what is in both. On a
            pool of triples where(query, corrupted (B, n, 3)).
        refill: False: the interval shrinks the set. True: the draw is so much longer that `candidates` are left
            after the cut, so that the count stays; a mask under keep, or a pool that runs out, may still leave
            fewer.
        on_short: "pad" or "raise", if fewer than k are left in a row.

    Example:
        >>> import numpy as np, naysay as ns
        >>> pool = ns.pools.Everything(ns.Positives.from_pairs([0, 1], [9, 8], n_items=21))
        >>> def score(anchors, ids):
        ...     return ids * 1.0
        >>> hard = Ring(pool, score, candidates=20, keep=(0.8, 0.95))       # the hardest one in twenty is left out
        >>> np.sort(hard.sample(ns.Query([0, 1]), 3, rng=ns.rng_for(0)).ids).tolist()
        [[17, 18, 19], [17, 18, 19]]
    """

    def __init__(
        self,
        pool: Pool,
        score: Score,
        candidates: Any,
        *,
        keep: Any = None,
        remove: Any = None,
        where: Where | None = None,
        refill: bool = False,
        on_short: str = "pad",
    ) -> None:
        """Keep the parts; numbers are looked at here, functions of the step when they are called."""
        check_is_pool(pool)
        check_score(score)
        if (keep is None) == (remove is None):
            got = "neither" if keep is None else "both"
            raise_invalid("keep", "given, or remove, but one of them", got, "Write keep=(0.9, 1.0).")
        if where is not None and not callable(where):
            raise_invalid("where", "None or a function where(query, ids)", type(where).__name__)
        if not isinstance(refill, bool):
            raise_invalid("refill", "True or False", shown(refill))
        check_one_of("on_short", on_short, ON_SHORT)
        self.pool, self.score, self.candidates, self.where = pool, score, candidates, where
        self.keep, self.remove, self.refill, self.on_short = keep, remove, refill, on_short
        self.distinct = getattr(pool, "distinct", None)
        interval = keep if remove is None else remove
        ends = interval if isinstance(interval, tuple | list) else (interval,)
        for step in () if any(map(callable, (candidates, *ends))) else (0,):
            self._numbers(step)

    @property
    def _name(self) -> str:
        return "keep" if self.remove is None else "remove"

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """(B, K) negatives in random order; k is a number, K = ceil(k), realised per row; or (B,) of them."""
        check_query(query)
        size, low, high = self._numbers(query.step)
        drawn = candidates_of(self.pool, query, size, rng)
        counts, width = wanted_slots(k, len(query), rng)
        scores = score_slots(self.score, query, drawn.ids, drawn.side)
        order = _hardest_first(scores)
        filled = gather(drawn.ids, order) >= 0
        inside = filled & _within(filled, low, high)
        if self.where is not None:
            inside = inside & gather(_mask(self.where, query, drawn), order)
        left = inside if self.remove is None else filled & ~inside
        places, held = pick_any(left, width, key_from(rng), scores)
        chosen = take(drawn, gather(order, places), held, counts, width, self.on_short, scores)
        cut = int((filled & ~left).sum())
        return replace(chosen, dropped={**chosen.dropped, OUTSIDE: cut}) if cut else chosen

    def _numbers(self, step: int) -> tuple[int, float, float]:
        """How many to draw, and the interval, at a step; checked."""
        size = check_whole("candidates", at_step(self.candidates, step), 1)
        interval = at_step(self.keep if self.remove is None else self.remove, step)
        if not isinstance(interval, tuple | list) or len(interval) != 2:
            raise_invalid(self._name, "a pair (low, high)", shown(interval))
        low, high = (at_step(end, step) for end in interval)
        for end in (low, high):
            if isinstance(end, bool) or not isinstance(end, int | float | np.floating):
                raise_invalid(self._name, "a pair of numbers", shown((low, high)))
        if not 0 <= low < high <= 1:
            raise_invalid(self._name, "rising and between 0.0 and 1.0", shown((low, high)), "1.0 is the hardest.")
        return self._longer(size, low, high) if self.refill else size, float(low), float(high)

    def _longer(self, size: int, low: float, high: float) -> int:
        """The least number of candidates of which `size` are left."""
        share = high - low if self.remove is None else 1 - (high - low)
        if share <= 0:
            raise_invalid("remove", "an interval that leaves some, to refill from", shown((low, high)))
        longer = np.arange(math.ceil((size + 1) / share) + 1)
        inside = _cuts(len(longer) - 1, low) - _cuts(len(longer) - 1, high)
        left = inside if self.remove is None else longer - inside
        return int(np.argmax(left >= size))  # a cut takes at most one candidate more than its share

    def __repr__(self) -> str:
        """The pool and the interval."""
        interval = self.keep if self.remove is None else self.remove
        options = f"{self._name}={interval}, refill={self.refill}"
        return f"Ring({self.pool!r}, candidates={self.candidates}, {options})"


def _cuts(most: int, end: float) -> NDArray[np.int64]:
    """(most + 1,) the place of an end of an interval among 0 ... most candidates, the hardest at 0."""
    places: NDArray[np.int64] = np.floor((1.0 - end) * np.arange(most + 1) + _ROUNDING).astype(np.int64)
    return places


def _hardest_first(scores: Array) -> Array:
    """(B, n) slots by score, highest first, of equal ones the earlier first; empty slots last."""
    if is_torch(scores):
        return scores.argsort(dim=1, descending=True, stable=True)
    return np.argsort(-scores, axis=1, kind="stable")


def _within(filled: Array, low: float, high: float) -> Array:
    """(B, n): whether a place, the hardest at 0, lies in the interval of its row; filled slots stand first."""
    width = filled.shape[1]
    first, end = _cuts(width, high), _cuts(width, low)
    place = np.arange(width)
    if is_torch(filled):
        first, end, place = (to_torch(array, filled.device) for array in (first, end, place))
    count = filled.sum(1)
    return (place >= first[count][:, None]) & (place < end[count][:, None])


def _mask(where: Where, query: Query, drawn: Negatives) -> Array:
    """(B, n) bool: what the user's function says; it never sees -1."""
    ids = drawn.ids
    shown_ids = ids.clamp(min=0) if is_torch(ids) else np.maximum(ids, 0)
    found = where(query, shown_ids if drawn.side is None else corrupted_triples(query.anchors, shown_ids, drawn.side))
    kind = "a tensor" if is_torch(ids) else "a NumPy array"
    if is_torch(found) != is_torch(ids) or not hasattr(found, "dtype"):
        raise_invalid("where", f"a function that answers with {kind}, like the query", f"a {type(found).__name__}")
    if tuple(found.shape) != tuple(ids.shape) or not str(found.dtype).endswith("bool"):
        got = f"{tuple(found.shape)} {found.dtype}"
        raise_invalid("where", f"a function that answers with {tuple(ids.shape)} bool", got)
    return found
