"""Samplers that are made of several: shares of each, or levels of feedback and a pool for the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._slots import EMPTY, PER_SLOT, blanked, constant, like_query
from naysay.arrays import module_of, to_numpy
from naysay.checks import as_floats, check_kind, check_one_of, check_range, public, raise_invalid, shown
from naysay.pools._slots import EXHAUSTED, shortfall
from naysay.pools.khop import positive_rows
from naysay.positives import Positives
from naysay.quantity.schedules import at_step
from naysay.rng import generator_of, key_from
from naysay.samplers._choose import Floats, Ids, in_use, take_kept, wanted_slots
from naysay.samplers._settings import Independent, Schedule, check_base, check_on_short, check_pool, number
from naysay.text import described
from naysay.types import (
    Array,
    MadeOf,
    Negatives,
    Pool,
    Query,
    Sampler,
    anchor_ids,
    check_query,
    needs_main_process,
    positive_ids,
)

__all__ = ["Mixed", "MultiFeedback"]

_MOST_PARTS = 127  # source is int8
# What the slots of a part that lacks an array get: a negative, of weight 1, not mixed.
_DEFAULTS = {"relation": 0, "weights": 1, "parents": -1}
_IF_ALL_HAVE_IT = ("scores", "suspicion")
_ALL_OR_NONE = ("vectors", "side")  # a slot without them would mean another thing


@final
@public
class Mixed:
    """Fill a row's k slots from several samplers, each with its share.

    With shares s of sum 1, part p gets floor(S_p k + u) - floor(S_(p-1) k + u) slots of a row, where S are the running
    sums and u ~ U(0, 1) is drawn once for the row: s_p k on average, exactly so where the S_p k are whole, and k in
    all. Slots are in the order of the parts.

    `source` (B, K) says which part a slot came from. `scores` and `suspicion` are kept if all parts have them;
    `weights`, `relation` and `parents` if one has, the others' slots then get 1, 0 (negative) and (-1, -1); `vectors`
    and `side` must come from all parts or from none. `dropped` adds up. log_q is None.

    Args:
        parts: {name: sampler}; the names become `source_names`.
        shares: One for each part, in their order: numbers of at least 0 of any sum. Each, or all together, may be a
            function of the step, which makes a curriculum.
        duplicates: "drop": an id that an earlier part brought to the row is left out, its slot stays empty and is
            counted as "duplicate". "keep": both stay. Repeats within a part, and mixed vectors, are always kept.
        on_short: "pad" or "raise", if a row has an empty slot in the end.

    Examples:
        >>> import naysay as ns
        >>> pool = ns.pools.Everything(ns.Positives.from_pairs([0, 1], [9, 8], n_items=100))
        >>> hard = ns.samplers.Dynamic(pool, score=lambda anchors, ids: ids * 1.0, candidates=32)
        >>> half = Mixed({"random": ns.samplers.Static(pool), "hard": hard}, shares=(0.5, 0.5))
        >>> half.sample(ns.Query([0, 1]), 4, rng=ns.rng_for(0)).source.tolist()
        [[0, 0, 1, 1], [0, 0, 1, 1]]
    """

    def __init__(
        self, parts: Mapping[str, Sampler], shares: Any, *, duplicates: str = "drop", on_short: str = "pad"
    ) -> None:
        """Keep the parts; check the shares unless they are functions of the step."""
        if not isinstance(parts, Mapping) or not 0 < len(parts) <= _MOST_PARTS:
            raise_invalid("parts", f"a dictionary {{name: sampler}} of 1 to {_MOST_PARTS}", shown(parts))
        for name, part in parts.items():
            check_kind("parts", name, str, "a dictionary {name: sampler}")
            check_base("parts", part)
        check_one_of("duplicates", duplicates, ("drop", "keep"))
        check_on_short(on_short)
        self.parts, self.shares = dict(parts), shares
        self.duplicates, self.on_short = duplicates, on_short
        self.distinct = duplicates == "drop" and all(getattr(part, "distinct", None) for part in parts.values())
        each = shares if isinstance(shares, tuple | list) else (shares,)
        if not any(map(callable, each)):
            self._running_shares(0)

    @property
    def needs_main_process(self) -> bool:
        """Whether a part does."""
        return needs_main_process(*self.parts.values())

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives, in the order of the parts."""
        check_query(query)
        running = self._running_shares(query.step)
        counts, width = wanted_slots(k, len(query), rng)
        offset = generator_of(key_from(rng)).random((len(query), 1))
        ends = np.floor(np.round(running * counts[:, None], 9) + offset).astype(np.int64)
        k_of_part = np.diff(ends, axis=1, prepend=0)  # (B, parts)
        used = [part for part in range(len(self.parts)) if k_of_part[:, part].any()]
        samplers = list(self.parts.values())
        answers = [samplers[part].sample(query, k_of_part[:, part], rng=rng) for part in used]
        row = _side_by_side(tuple(self.parts), used, answers, query)
        ids = np.asarray(to_numpy(row.ids))
        duplicate = _from_an_earlier_part(row) if self.duplicates == "drop" else np.zeros(ids.shape, np.bool_)
        chosen = take_kept(row, (ids >= 0) & ~duplicate, query, counts, width, self.on_short)
        n_duplicates = int(duplicate.sum())
        n_exhausted = chosen.dropped.get(EXHAUSTED, 0) - n_duplicates
        dropped = {**row.dropped, EXHAUSTED: n_exhausted, "duplicate": n_duplicates}
        return blanked(replace(chosen, dropped={reason: count for reason, count in dropped.items() if count}))

    def _running_shares(self, step: int) -> Floats:
        """(parts,) the running sums of the shares at a step, the last of them 1; checked."""
        shares = at_step(self.shares, step)
        if not isinstance(shares, tuple | list | np.ndarray) or len(shares) != len(self.parts):
            raise_invalid("shares", f"one for each of the {len(self.parts)} parts", shown(shares))
        now = [at_step(share, step) for share in shares]
        plain = all(isinstance(share, int | float | np.number) and not isinstance(share, bool) for share in now)
        if not plain or not all(0 <= share < np.inf for share in now) or not sum(now) > 0:
            raise_invalid("shares", "numbers of at least 0, one of them above 0", shown(now))
        sums = np.cumsum(np.array(now, np.float64))
        return np.asarray(sums / sums[-1])

    def __repr__(self) -> str:
        return described(self)


def _side_by_side(names: tuple[str, ...], used: Sequence[int], answers: Sequence[Negatives], query: Query) -> Negatives:
    """(B, sum of K + 1) the answers of the parts `used`, in order, and one empty slot at the end of each row."""
    widths = [answer.shape[1] for answer in answers]
    source = np.repeat(np.array([*used, -1], np.int8), [*widths, 1])
    reasons = sorted({reason for answer in answers for reason in answer.dropped})
    ids = like_query(np.full((len(query), 1), -1), query)
    joined: dict[str, Array] = {"ids": module_of(ids).concatenate([*(answer.ids for answer in answers), ids], 1)}
    for name in PER_SLOT:
        if name not in ("ids", "source", "log_q"):
            array = _concatenated(name, names, used, answers)
            if array is not None:
                joined[name] = array
    return Negatives(
        **joined,
        source=like_query(np.broadcast_to(source, (len(query), len(source))), query),
        source_names=names,
        dropped={reason: sum(answer.dropped.get(reason, 0) for answer in answers) for reason in reasons},
    )


def _concatenated(name: str, names: tuple[str, ...], used: Sequence[int], answers: Sequence[Negatives]) -> Array:
    """(B, sum of K + 1, ...) one array of all answers, with an empty slot at the end; None if it is not kept."""
    arrays = [getattr(answer, name) for answer in answers]
    given = [array for array in arrays if array is not None]
    some_lack_it = len(given) < len(arrays)
    if not given or (some_lack_it and name in _IF_ALL_HAVE_IT):
        return None
    if some_lack_it and name in _ALL_OR_NONE:
        lacking = next(names[part] for part, array in zip(used, arrays, strict=True) if array is None)
        raise_invalid("parts", f"samplers that all return {name}, or none", f"{lacking!r} without")
    dimensions = {tuple(array.shape[2:]) for array in given}
    if len(dimensions) > 1:
        raise_invalid("parts", f"samplers whose {name} have one dimension", sorted(dimensions))
    like = given[0][:, :0]
    complete = [
        constant(like, answer.shape[1], _DEFAULTS[name]) if array is None else array
        for array, answer in zip(arrays, answers, strict=True)
    ]
    return module_of(like).concatenate([*complete, constant(like, 1, EMPTY.get(name, 0))], 1)


def _from_an_earlier_part(row: Negatives) -> NDArray[np.bool_]:
    """(B, N): slots whose id (with sides: side and id) an earlier part has in the row; mixed vectors never are."""
    ids, source = np.asarray(to_numpy(row.ids)), np.asarray(to_numpy(row.source))
    keys = ids if row.side is None else ids * 3 + np.asarray(to_numpy(row.side))
    unique_by_nature = ids < 0
    if row.parents is not None:
        unique_by_nature = unique_by_nature | (np.asarray(to_numpy(row.parents))[:, :, 0] >= 0)
    keys = np.where(unique_by_nature, -1 - np.arange(ids.shape[1]), keys)
    order = np.argsort(keys, axis=1, kind="stable")  # of one key, the earliest part first
    ordered, parts = (np.take_along_axis(array, order, axis=1) for array in (keys, source))
    starts = np.ones(ids.shape, np.bool_)
    starts[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    first = np.maximum.accumulate(np.where(starts, np.arange(ids.shape[1]), 0), axis=1)
    later_part = parts > np.take_along_axis(parts, first, axis=1)
    duplicate = np.empty(ids.shape, np.bool_)
    np.put_along_axis(duplicate, order, later_part, axis=1)
    return duplicate


# ---- levels of feedback ---------------------------------------------------------------------------------


@final
@public
@dataclass(eq=False, repr=False)
class MultiFeedback(MadeOf, Independent):
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
        >>> sampler = MultiFeedback({"bought": bought, "viewed": viewed}, (1, 1), rest, share=0.0)
        >>> sorted(set(sampler.sample(ns.Query([0], positives=[0]), 20, rng=ns.rng_for(0)).ids[0].tolist()))
        [1, 2]
    """

    _made_of = ("unobserved",)

    levels: Mapping[str, Positives]
    weights: Any
    unobserved: Pool
    share: Any = 0.5
    on_short: str = "pad"

    def __post_init__(self) -> None:
        check_pool(self.unobserved, "unobserved")
        check_on_short(self.on_short)
        self._share: Schedule = number("share", self.share, at_least=0, at_most=1)
        self._table = _Levels.of(self.levels, self.weights)
        independent = getattr(self.unobserved, "distinct", True) is False
        self._exact = independent and self._table.is_within(getattr(self.unobserved, "positives", None))

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives; the query has positives."""
        check_query(query)
        share, levels = self._share(query.step), self._table
        anchors, own = anchor_ids(query), positive_ids(query)
        check_range("anchors", anchors, levels.n_anchors, "anchors")
        check_range("positives", own, levels.n_items, "items")
        counts, width = wanted_slots(k, len(query), rng)
        uniform = generator_of(key_from(rng)).random((len(anchors), width, 2))
        unobserved = self.unobserved.draw(query, counts, rng=rng).numpy()
        rest = np.full((len(anchors), width), -1, np.int64)
        rest[:, : unobserved.shape[1]] = unobserved.ids

        lower, level, log_lower, none = levels.draw_lower(anchors, own, uniform[:, :, 0])
        from_pool = (uniform[:, :, 1] < share) | none[:, None]
        observed = np.zeros(rest.shape, np.bool_) if self._exact else levels.contains(anchors, rest)
        ids = np.where(from_pool, np.where(observed, -1, rest), lower)
        wanted = in_use(counts, width)
        ids[~wanted] = -1
        log_q = None
        if self._exact and unobserved.log_q is not None:
            log_rest = np.zeros(rest.shape)
            log_rest[:, : unobserved.shape[1]] = unobserved.log_q
            with np.errstate(divide="ignore"):
                log_pool = np.log(np.where(none, 1.0, share))[:, None] + log_rest
                log_level = np.log1p(-np.minimum(share, 1.0)) + log_lower
            log_q = np.where(ids < 0, 0.0, np.where(from_pool, log_pool, log_level))
        n_observed = int((observed & from_pool & wanted).sum())
        dropped = shortfall("pad" if n_observed else self.on_short, ids, counts)
        if n_observed:
            n_exhausted = dropped.get(EXHAUSTED, n_observed) - n_observed
            dropped = {"observed": n_observed, **({EXHAUSTED: n_exhausted} if n_exhausted else {})}
        source = np.where(ids < 0, 0, np.where(from_pool, len(levels.names), level)).astype(np.int8)
        names = (*levels.names, "unobserved")
        return Negatives(ids, source=source, source_names=names, log_q=log_q, dropped=dropped).like(query)

    def draw_pairs(self, n: int, *, rng: np.random.Generator) -> tuple[Ids, Ids]:
        """(n,) anchors and (n,) items: a level by w_l |S_l|, then one of its pairs, as MF-BPR draws its positives."""
        levels = self._table
        drawn = generator_of(key_from(rng)).random(n) * levels.weight_before[-1]
        place = np.minimum(np.searchsorted(levels.weight_before, drawn, "right") - 1, len(levels.items) - 1)
        return np.searchsorted(levels.indptr, place, "right") - 1, levels.items[place]


@dataclass(frozen=True, eq=False)
class _Levels:
    """All levels as one CSR: the items of an anchor by level, the strongest first."""

    levels: Mapping[str, Positives]
    weights: Floats  # of each level
    indptr: Ids  # (n_anchors + 1,)
    items: Ids
    level: Ids  # of each item
    keys: Ids  # anchor * levels + level of each item: ascending
    weight_before: Floats  # the sum of the weights of all items before each, and of all

    @classmethod
    def of(cls, levels: Any, weights: Any) -> _Levels:
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
        _, strongest = np.unique(anchors * n_items + items, return_index=True)  # the first of each pair
        anchors, items, level = anchors[strongest], items[strongest], level[strongest]
        order = np.lexsort((items, level, anchors))
        return cls(
            levels,
            weight,
            np.concatenate([[0], np.cumsum(np.bincount(anchors, minlength=n_anchors))]),
            items[order],
            level[order],
            anchors[order] * len(levels) + level[order],
            np.concatenate([[0.0], np.cumsum(weight[level[order]])]),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Of the levels."""
        return tuple(self.levels)

    @property
    def n_anchors(self) -> int:
        """Of all levels."""
        return len(self.indptr) - 1

    @property
    def n_items(self) -> int:
        """Of all levels."""
        return next(iter(self.levels.values())).n_items

    def contains(self, anchors: Ids, ids: Ids) -> NDArray[np.bool_]:
        """(B, K) whether an id is in a level of its anchor."""
        return np.asarray(np.any([known.contains(anchors, ids) for known in self.levels.values()], axis=0))

    def is_within(self, known: Any) -> bool:
        """Whether all pairs are known to a pool."""
        if not isinstance(known, Positives) or (known.n_anchors, known.n_items) != (self.n_anchors, self.n_items):
            return False
        anchors = np.repeat(np.arange(self.n_anchors), np.diff(self.indptr))
        return bool(known.contains(anchors, self.items, relation="any").all())

    def draw_lower(self, anchors: Ids, positives: Ids, uniform: Floats) -> tuple[Ids, Ids, Floats, NDArray[np.bool_]]:
        """Items of levels below the positive's (B, K), their levels, log w - log sum, and whether there are none (B,).

        `uniform` (B, K) are numbers in [0, 1).
        """
        level_of_positive = np.zeros(len(anchors), np.int64)  # also of a positive that is in no level
        for number_of_level, known in reversed([*enumerate(self.levels.values())]):
            level_of_positive[known.contains(anchors, positives)] = number_of_level
        # Items of an anchor are sorted by level, so that the lower ones are the end of its row.
        start = np.searchsorted(self.keys, anchors * len(self.levels) + level_of_positive, "right")
        end = self.indptr[anchors + 1]
        low, high = self.weight_before[start], self.weight_before[end]
        none = high <= low
        if not len(self.items):
            nothing = np.zeros(uniform.shape, np.int64)
            return nothing - 1, nothing, np.zeros(uniform.shape), none
        place = np.searchsorted(self.weight_before, low[:, None] + uniform * (high - low)[:, None], "right") - 1
        place = np.clip(place, start[:, None], np.maximum(end - 1, start)[:, None])
        place = np.minimum(place, len(self.items) - 1)
        level = self.level[place]
        with np.errstate(divide="ignore"):
            log_chance = np.log(self.weights[level]) - np.log(np.where(none, 1.0, high - low))[:, None]
        ids = np.where(none[:, None], -1, self.items[place])
        return ids, level, np.where(none[:, None], 0.0, log_chance), none
