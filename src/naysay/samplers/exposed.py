"""Exposed: negatives from weaker feedback than the positive's: views against clicks, clicks against purchases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import as_floats, check_kind, check_one_of, check_range, public, raise_invalid
from naysay.pools._slots import ON_SHORT, shortfall
from naysay.pools.khop import positive_rows
from naysay.positives import Positives
from naysay.rng import generator_of, key_from
from naysay.samplers._candidates import Independent, check_is_pool, number_at, wanted_slots
from naysay.types import MadeOf, Negatives, Pool, Query, anchor_ids, check_query, positive_ids

UNOBSERVED = "unobserved"


@final
@public
@dataclass(eq=False, repr=False)
class Exposed(MadeOf, Independent):
    """Draw each negative from a level of feedback below the positive's, or, by a share, from what was not observed.

    Levels are ordered, the strongest first: {"bought": ..., "clicked": ..., "viewed": ...}. A pair that is in several
    counts in the strongest. The level of a row is that of (anchor, positive); a positive of no level counts as one of
    the first. With probability `share` a slot comes from the pool `unobserved`, else an item i of a lower level l:

        P(i | a, level) = (1 - share) w_l / sum over lower levels m of w_m |S_m(a)|

    An anchor without items of a lower level gets all from the pool; `source` says where a slot came from. Draws are
    independent. log_q is exact if the pool knows all levels as its `positives` and draws independently; else draws of
    the pool that are in a level are left out (counted as "observed") and log_q is None.

    Loni, Pagano, Larson, Hanjalic. Bayesian Personalized Ranking with Multi-Channel User Feedback. RecSys 2016
    (`draw_pairs` draws its positives); Zhao, McAuley, King. Leveraging Social Connections to Improve Personalized
    Ranking for Collaborative Filtering. CIKM 2014 (SBPR: own items, then those of friends); Ding et al. An Improved
    Sampler for Bayesian Personalized Ranking by Leveraging View Data. WWW 2018.

    Cost: O(log pairs) per draw beside the pool's; 24 bytes per pair.

    Args:
        levels: {name: Positives}, the strongest first, all of the same anchors and items.
        weights: One for each level, at least 0: how much an item of the level counts. MF-BPR uses 1 / rank of the level
            for positives; for negatives the lower level is the likelier.
        unobserved: A pool for the rest.
        share: Of the unobserved, in [0, 1], or a function of the step. 1 is the pool alone.
        on_short: "pad" or "raise", if the pool has too few.

    Examples:
        >>> import naysay as ns
        >>> bought = ns.Positives.from_pairs([0], [0], 1, 6)
        >>> viewed = ns.Positives.from_pairs([0, 0, 0], [0, 1, 2], 1, 6)
        >>> rest = ns.pools.Everything(bought.union(viewed), distinct=False)
        >>> sampler = Exposed({"bought": bought, "viewed": viewed}, (1, 1), rest, share=0.0)
        >>> sorted(set(sampler.sample(ns.Query([0], positives=[0]), 20, rng=ns.rng_for(0)).ids[0].tolist()))
        [1, 2]
    """

    _made_of = ("unobserved",)

    levels: Mapping[str, Positives]
    weights: Any
    unobserved: Pool
    share: Any = 0.5
    on_short: str = "pad"
    _table: _Levels = field(init=False)

    def __post_init__(self) -> None:
        check_is_pool(self.unobserved)
        check_one_of("on_short", self.on_short, ON_SHORT)
        number_at("share", self.share, None, at_least=0, at_most=1)
        self._table = _levels(self.levels, self.weights)
        known = getattr(self.unobserved, "positives", None)
        exact = isinstance(known, Positives) and getattr(self.unobserved, "distinct", True) is False
        self._exact = exact and self._table.is_within(known)

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives; the query has positives."""
        check_query(query)
        share = number_at("share", self.share, query.step, at_least=0, at_most=1)
        anchors, own, table = anchor_ids(query), positive_ids(query), self._table
        check_range("anchors", anchors, table.n_anchors, "anchors")
        check_range("positives", own, table.n_items, "items")
        counts, width = wanted_slots(k, len(query), rng)
        uniform = generator_of(key_from(rng)).random((len(anchors), width, 2))
        drawn = self.unobserved.draw(query, counts, rng=rng).numpy()
        rest = np.full((len(anchors), width), -1, np.int64)
        rest[:, : drawn.shape[1]] = drawn.ids
        level = table.level_of(anchors, own)
        ids, place, none, log_lower = table.draw(anchors, level, uniform[:, :, 0])
        from_pool = (uniform[:, :, 1] < share) | none[:, None]
        observed = 0
        if not self._exact:
            seen = table.contains(anchors, rest) & (rest >= 0)
            observed, rest = int((seen & from_pool & _wanted(counts, width)).sum()), np.where(seen, -1, rest)
        ids = np.where(from_pool, rest, ids)
        ids[~_wanted(counts, width)] = -1
        source = np.where(from_pool, len(table.names), place).astype(np.int8)
        log_q = None
        if self._exact and drawn.log_q is not None:
            log_rest = np.zeros(rest.shape)
            log_rest[:, : drawn.shape[1]] = drawn.log_q
            with np.errstate(divide="ignore"):
                chance = np.log(np.where(none, 1.0, share))[:, None], np.log1p(-np.minimum(share, 1.0))
            log_q = np.where(ids < 0, 0.0, np.where(from_pool, chance[0] + log_rest, chance[1] + log_lower))
        missing = shortfall("pad" if observed else self.on_short, ids, counts)
        if observed:
            missing = {"observed": observed, "exhausted": missing.get("exhausted", observed) - observed}
        answer = Negatives(ids, source=np.where(ids < 0, 0, source).astype(np.int8), log_q=log_q)
        dropped = {reason: count for reason, count in missing.items() if count}
        return replace(answer, source_names=(*table.names, UNOBSERVED), dropped=dropped).like(query)

    def draw_pairs(self, n: int, *, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(n,) anchors and (n,) items: a level by w_l |S_l|, then one of its pairs, as MF-BPR draws its positives."""
        table = self._table
        drawn = generator_of(key_from(rng)).random(n) * table.cumulated[-1]
        place = np.minimum(np.searchsorted(table.cumulated, drawn, "right") - 1, len(table.items) - 1)
        return np.searchsorted(table.indptr, place, "right") - 1, table.items[place]


def _wanted(counts: NDArray[np.int64], width: int) -> NDArray[np.bool_]:
    return np.arange(width) < counts[:, None]


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Levels:
    """All levels as one CSR: the items of an anchor by level, the strongest first."""

    names: tuple[str, ...]
    n_anchors: int
    n_items: int
    indptr: NDArray[np.int64]  # (n_anchors + 1,)
    items: NDArray[np.int64]
    level: NDArray[np.int64]  # of each item
    order: NDArray[np.int64]  # anchor * levels + level of each item: ascending
    weights: NDArray[np.float64]  # of each level
    cumulated: NDArray[np.float64]  # the sum of the weights of all items before each, and of all
    pairs: NDArray[np.int64]  # anchor * n_items + item, sorted, and where each is
    where: NDArray[np.int64]

    def _find(self, anchors: NDArray[np.int64], ids: NDArray[np.int64]) -> tuple[Any, Any]:
        """Places of pairs, and whether they are there."""
        wanted = anchors * self.n_items + ids
        place = np.minimum(np.searchsorted(self.pairs, wanted), max(len(self.pairs) - 1, 0))
        return (place, self.pairs[place] == wanted) if len(self.pairs) else (place, np.zeros(wanted.shape, bool))

    def contains(self, anchors: NDArray[np.int64], ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        """(B, K) whether an id is in a level of its anchor."""
        return np.asarray(self._find(anchors[:, None], ids)[1])

    def level_of(self, anchors: NDArray[np.int64], ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """(B,) the level of each pair; 0 for one that is in none."""
        place, there = self._find(anchors, ids)
        return np.where(there, self.level[self.where[place]], 0) if len(self.pairs) else np.zeros(len(ids), np.int64)

    def is_within(self, known: Any) -> bool:
        """Whether all pairs are known."""
        anchors, items = self.pairs // self.n_items, self.pairs % self.n_items
        fits = known.n_anchors == self.n_anchors and known.n_items == self.n_items
        return bool(fits and known.contains(anchors, items, relation="any").all())

    def draw(self, anchors: NDArray[np.int64], level: NDArray[np.int64], uniform: NDArray[np.float64]) -> Any:
        """Items of lower levels (B, K), their level, whether there are none (B,), and log w - log sum (B, K)."""
        # Items of an anchor are sorted by level, so that the lower ones are the end of its row.
        start = np.searchsorted(self.order, anchors * len(self.names) + level, "right")
        low, high = self.cumulated[start], self.cumulated[self.indptr[anchors + 1]]
        none = high <= low
        place = np.searchsorted(self.cumulated, low[:, None] + uniform * (high - low)[:, None], "right") - 1
        place = np.clip(place, start[:, None], np.maximum(self.indptr[anchors + 1] - 1, start)[:, None])
        place = np.minimum(place, max(len(self.items) - 1, 0))
        if not len(self.items):
            return np.full(uniform.shape, -1), np.zeros(uniform.shape, int), none, np.zeros(uniform.shape)
        found = self.level[place]
        with np.errstate(divide="ignore"):
            log_chance = np.log(self.weights[found]) - np.log(np.where(none, 1.0, high - low))[:, None]
        return np.where(none[:, None], -1, self.items[place]), found, none, np.where(none[:, None], 0.0, log_chance)


def _levels(levels: Any, weights: Any) -> _Levels:
    """Check the levels, and join them; a pair counts in the strongest."""
    check_kind("levels", levels, Mapping, "{name: Positives}, the strongest first")
    for name, known in levels.items():
        check_kind("levels", known, Positives, f"{{name: Positives}}, and {name!r} is not")
    sizes = {(known.n_anchors, known.n_items) for known in levels.values()}
    if len(sizes) != 1:
        raise_invalid("levels", "at least one, all of the same anchors and items", f"sizes {sorted(sizes)}")
    weight = as_floats("weights", weights)
    if weight.shape != (len(levels),) or not (np.isfinite(weight) & (weight >= 0)).all():
        raise_invalid("weights", f"{len(levels)} numbers of at least 0, one for each level", weight.tolist())
    (n_anchors, n_items) = sizes.pop()
    rows = [positive_rows(known) for known in levels.values()]
    anchors = np.concatenate([np.repeat(np.arange(n_anchors), np.diff(one.indptr)) for one in rows])
    items = np.concatenate([one.indices for one in rows]).astype(np.int64)
    level = np.repeat(np.arange(len(levels)), [len(one.indices) for one in rows])
    _, first = np.unique(anchors * n_items + items, return_index=True)  # the strongest comes first
    anchors, items, level = anchors[first], items[first], level[first]
    order = np.lexsort((items, level, anchors))
    counts = np.bincount(anchors, minlength=n_anchors)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    cumulated = np.concatenate([[0.0], np.cumsum(weight[level[order]])])
    indptr = np.concatenate([[0], np.cumsum(counts)])
    ranks, pairs = anchors[order] * len(levels) + level[order], anchors * n_items + items
    columns = items[order], level[order], ranks, weight, cumulated, pairs, place
    return _Levels(tuple(levels), n_anchors, n_items, indptr, *columns)
