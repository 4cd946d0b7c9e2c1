"""Ring: keep or remove an interval of difficulty among an anchor's candidates, by the model's score now."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._slots import Score, corrupted_triples, gather
from naysay.arrays import is_torch, to_torch
from naysay.checks import check_bool, public, raise_invalid, shown
from naysay.quantity.schedules import at_step
from naysay.rng import key_from
from naysay.samplers import _candidates
from naysay.samplers._candidates import FromPool
from naysay.samplers._top_k import pick_any, take
from naysay.types import Array, Negatives, Pool, Query

# where(query, ids (B, n)) -> (B, n) bool; of triples where(query, corrupted (B, n, 3))
Where = Callable[[Query, Array], Array]
OUTSIDE = "outside the ring"
_ROUNDING = 1e-9  # (1 - 0.9) * 10 is 0.9999999999999998, which must count as 1


@final
@public
@dataclass(eq=False, repr=False)
class Ring(FromPool):
    """Draw and score candidates, keep or remove a percentile interval of them, and take k of the rest at random.

    The interval may be a function of the step, and so may each of its ends and `candidates` (`naysay.quantity.Linear`).

    The rule for intervals: the m candidates of a row are sorted by score, the hardest at place 0, ties in the
    order of the draw. (low, high) are the places floor((1 - high) m) to floor((1 - low) m), the last excluded. So the
    hardest share x is floor(x m) candidates (0.1 % of fewer than 1,000 is none), and adjacent intervals neither share a
    candidate nor leave one out. Percentiles are those of the row, whatever the mask.

    `dropped` counts the candidates that were cut, as "outside the ring". `scores` (B, K) are the model's. log_q is
    None, because the cut depends on them. The k are a uniform choice without repeats from what is left. Cost: the
    pool's draw, one call of score for (B, candidates), and a sort of each row.

    Cai, Frankle, Schwab, Morcos. Are All Negatives Created Equal in Contrastive Instance Discrimination? 2020 (hard is
    (0.95, 1.0), the very hardest (0.999, 1.0)); Wu, Mosse, Zhuang, Yamins, Goodman. Conditional Negative Sampling for
    Contrastive Learning of Visual Representations. ICLR 2021 (a ring that closes in during training).

    Args:
        pool: Where candidates come from. It excludes known positives.
        score: As in `Dynamic`.
        candidates: How many candidates to draw and score for each anchor. None for all entries of a `Memory` or
            `InBatch`, without `refill`.
        keep: (low, high) in [0, 1]: only this interval of difficulty stays; 1.0 is the hardest.
        remove: (low, high): this interval is removed, and the rest stays. Give either `keep` or `remove`.
        where: where(query, ids (B, n)) -> (B, n) bool in the query's array type (same class, other class): restricts
            the interval to the candidates for which it holds. On a pool of triples where(query, corrupted (B, n, 3)).
        refill: If True, more candidates are drawn, so that `candidates` are left after the cut. A mask with `keep`, or
            a pool that runs out, may still leave fewer.
        on_short: "pad" or "raise", if fewer than k are left in a row.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> pool = ns.pools.Everything(ns.Positives.from_pairs([0, 1], [9, 8], n_items=21))
        >>> def score(anchors, ids):
        ...     return ids * 1.0
        >>> hard = Ring(pool, score, candidates=20, keep=(0.8, 0.95))       # the hardest one in twenty is left out
        >>> np.sort(hard.sample(ns.Query([0, 1]), 3, rng=ns.rng_for(0)).ids).tolist()
        [[17, 18, 19], [17, 18, 19]]
    """

    pool: Pool
    score: Score
    candidates: Any
    _: KW_ONLY
    keep: Any = None
    remove: Any = None
    where: Where | None = None
    refill: bool = False
    on_short: str = "pad"

    def __post_init__(self) -> None:
        _candidates.check_parts(self.pool, self.score, self.on_short)
        if (self.keep is None) == (self.remove is None):
            got = "neither" if self.keep is None else "both"
            raise_invalid("keep", "given, or `remove`, but not both", got, "Write keep=(0.9, 1.0).")
        if self.where is not None and not callable(self.where):
            raise_invalid("where", "None or a function where(query, ids)", type(self.where).__name__)
        check_bool("refill", self.refill)
        self._name, self._interval = ("keep", self.keep) if self.remove is None else ("remove", self.remove)
        ends = self._interval if isinstance(self._interval, tuple | list) else (self._interval,)
        if not any(map(callable, (self.candidates, *ends))):
            self._settings(0)

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives in random order."""
        candidates, low, high = self._settings(_candidates.step_of(query))
        drawn = _candidates.candidates_of(self.pool, query, candidates, rng)
        counts, width = _candidates.wanted_slots(k, len(query), rng)
        _candidates.warn_of_few(self, width, candidates=at_step(self.candidates, query.step))
        scores = _candidates.candidate_scores(self.score, query, drawn)
        order = _hardest_first(scores)
        filled = gather(drawn.ids, order) >= 0
        inside = filled & _within(filled, low, high)
        if self.where is not None:
            inside = inside & gather(_mask(self.where, query, drawn), order)
        left = inside if self.remove is None else filled & ~inside
        places, kept = pick_any(left, width, key_from(rng), scores)
        chosen = take(drawn, gather(order, places), kept, counts, width, self.on_short, scores)
        n_outside = int((filled & ~left).sum())
        return replace(chosen, dropped={**chosen.dropped, OUTSIDE: n_outside}) if n_outside else chosen

    def _settings(self, step: int) -> tuple[int | None, float, float]:
        """How many candidates to draw, and the interval, at a step."""
        candidates = _candidates.whole_at("candidates", self.candidates, step, optional=not self.refill)
        interval = at_step(self._interval, step)
        if isinstance(interval, tuple | list):
            interval = tuple(at_step(end, step) for end in interval)
        low, high = _candidates.check_interval(self._name, interval, "<", "1.0 is the hardest.")
        return self._longer(candidates, low, high) if self.refill else candidates, low, high

    def _longer(self, size: int, low: float, high: float) -> int:
        """The smallest number of candidates of which `size` are left after the cut."""
        share = high - low if self.remove is None else 1 - (high - low)
        if share <= 0:
            raise_invalid("remove", "an interval that leaves some candidates, to refill from", shown((low, high)))
        longer = np.arange(math.ceil((size + 1) / share) + 1)
        inside = _cuts(len(longer) - 1, low) - _cuts(len(longer) - 1, high)
        left = inside if self.remove is None else longer - inside
        return int(np.argmax(left >= size))  # a cut takes at most one candidate more than its share


def _cuts(n: int, end: float) -> NDArray[np.int64]:
    """(n + 1,) the place of an interval's end among 0 ... n candidates, the hardest at 0."""
    places: NDArray[np.int64] = np.floor((1.0 - end) * np.arange(n + 1) + _ROUNDING).astype(np.int64)
    return places


def _hardest_first(scores: Array) -> Array:
    """(B, n) slots by score, highest first, of equal ones the earlier first; empty slots last."""
    if is_torch(scores):
        return scores.argsort(dim=1, descending=True, stable=True)
    return np.argsort(-scores, axis=1, kind="stable")


def _within(filled: Array, low: float, high: float) -> Array:
    """(B, n): whether a place, the hardest at 0, lies in the interval of its row; filled slots come first."""
    width = filled.shape[1]
    first, end = _cuts(width, high), _cuts(width, low)
    place = np.arange(width)
    if is_torch(filled):
        first, end, place = (to_torch(array, filled.device) for array in (first, end, place))
    count = filled.sum(1)
    return (place >= first[count][:, None]) & (place < end[count][:, None])


def _mask(where: Where, query: Query, drawn: Negatives) -> Array:
    """(B, n) bool: what the user's function returns. It never gets -1."""
    ids = drawn.ids
    valid = ids.clamp(min=0) if is_torch(ids) else np.maximum(ids, 0)
    mask = where(query, valid if drawn.side is None else corrupted_triples(query.anchors, valid, drawn.side))
    kind = "a tensor" if is_torch(ids) else "a NumPy array"
    if is_torch(mask) != is_torch(ids) or not hasattr(mask, "dtype"):
        raise_invalid("where", f"a function that returns {kind}, like the query", f"a {type(mask).__name__}")
    if tuple(mask.shape) != tuple(ids.shape) or not str(mask.dtype).endswith("bool"):
        got = f"{tuple(mask.shape)} {mask.dtype}"
        raise_invalid("where", f"a function that returns {tuple(ids.shape)} bool", got)
    return mask
