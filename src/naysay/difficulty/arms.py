"""The arms of a training study by difficulty: which percentiles of an anchor's negatives are needed."""

from __future__ import annotations

from typing import Any

from naysay._slots import Score
from naysay.checks import public, raise_invalid
from naysay.samplers.ring import Ring, Where
from naysay.types import Array, Pool, Query

_ONLY = ((0.85, 0.9), (0.9, 0.95), (0.95, 1.0))
_WITHOUT = ((0.85, 0.9), (0.9, 0.95), (0.95, 1.0), (0.9, 1.0), (0.85, 1.0))
_EASIEST = (0.5, 0.75, 0.85, 0.9, 0.95, 0.999)
_HARDEST = (0.999, 1.0)


@public
def arms(pool: Pool, score: Score, candidates: int, same_class: Where) -> dict[str, Ring]:
    """Return a sampler for each arm of the study of Cai et al., by name: 20, "all" among them.

    Its Fig. 2 keeps a percentile interval alone, or leaves it out, so that the set shrinks. Its Fig. 3 keeps the
    easiest. Its Table 1 replaces what is left out by further candidates, so that the number stays; here the two arms
    that leave out a whole class, or all but its hardest, shrink. Train one model with each, from the same start.

    Cai, Frankle, Schwab, Morcos. Are All Negatives Created Equal in Contrastive Instance Discrimination? 2020.

    Args:
        pool: Where candidates come from, such as a `Memory`.
        score: As in `Ring`.
        candidates: How many candidates each anchor has; the hardest 0.1 % of fewer than 1,000 are none.
        same_class: same_class(query, ids (B, n)) -> (B, n) bool in the query's array type.

    Returns:
        {name: Ring}, in the order of the paper.

    Examples:
        >>> import naysay as ns
        >>> pool = ns.pools.Everything(ns.Positives.from_pairs([0], [0], n_items=2000))
        >>> made = arms(pool, lambda anchors, ids: ids * 1.0, 1000, lambda query, ids: ids % 2 == 0)
        >>> len(made), list(made)[:3]
        (20, ['all', 'only 85-90 %', 'only 90-95 %'])
    """
    if not callable(same_class):
        raise_invalid("same_class", "a function same_class(query, ids)", type(same_class).__name__)

    def other_class(query: Query, ids: Array) -> Array:
        return ~same_class(query, ids)

    made: dict[str, dict[str, Any]] = {"all": {"keep": (0.0, 1.0)}}
    made |= {f"only {_percent(part)}": {"keep": part} for part in _ONLY}
    made |= {f"all but {_percent(part)}": {"remove": part} for part in _WITHOUT}
    made |= {f"easiest {100 * share:g} %": {"keep": (0.0, share)} for share in _EASIEST}
    made |= {
        "without the hardest 0.1 %": {"remove": _HARDEST, "refill": True},
        "without the same class": {"keep": (0.0, 1.0), "where": other_class},
        "without the hardest 0.1 % of the same class": {"remove": _HARDEST, "where": same_class, "refill": True},
        "without the hardest 0.1 % of other classes": {"remove": _HARDEST, "where": other_class, "refill": True},
        "without the easiest 99.9 % of the same class": {"remove": (0.0, _HARDEST[0]), "where": same_class},
    }
    return {name: Ring(pool, score, candidates, **settings) for name, settings in made.items()}


def _percent(interval: tuple[float, float]) -> str:
    low, high = interval
    return f"{100 * low:g}-{100 * high:g} %"
