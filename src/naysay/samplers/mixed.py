"""Mixed: a row's slots from several samplers, by shares that may move with the step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._slots import EMPTY, PER_SLOT, blanked, constant, like_query
from naysay.arrays import module_of, to_numpy
from naysay.checks import check_bool, check_one_of, public, raise_invalid, shown
from naysay.errors import NaysayError
from naysay.pools._slots import EXHAUSTED, ON_SHORT
from naysay.quantity.schedules import at_step
from naysay.rng import generator_of, key_from
from naysay.samplers._candidates import step_of, wanted_slots
from naysay.samplers._top_k import take, take_kept
from naysay.text import described
from naysay.types import Array, Negatives, Query, Sampler, needs_main_process

DUPLICATE = "duplicate"
_MAX_PARTS = 127  # source is int8
# What the slots of a part that lacks an array get: a negative, of weight 1, not mixed.
_DEFAULTS = {"relation": 0, "weights": 1, "parents": -1}
_IF_ALL = ("scores", "suspicion")  # kept if all parts have them
_ALL_OR_NONE = ("vectors", "side")  # a slot without them would mean another thing


@final
@public
class Mixed:
    """Fill a row's k slots from several samplers, each with its share.

    With shares s of sum 1, part p gets floor(S_p k + u) - floor(S_(p-1) k + u) slots of a row, where S are the running
    sums and u ~ U(0, 1) is drawn once for the row: s_p k on average, exactly so where the S_p k are whole, and k in
    all. A part that gets no slot in the batch is not called. Slots are in the order of the parts, unless one_draw=True.

    `source` (B, K) says which part a slot came from; a part's own source is not kept. `scores` and `suspicion` are kept
    if all parts have them; `weights`, `relation` and `parents` if one has, the others' slots then get 1, 0 (negative)
    and (-1, -1); `vectors` and `side` must come from all parts or from none. `dropped` adds up. log_q is None, because
    the parts' are those of their own draws. Cost: that of the parts, and a sort of K ids per row for the duplicates.

    With one_draw=True each slot is a draw from the mixture: its part is drawn by the shares, independent of the other
    slots, and log_q is exact, log sum_p s_p q_p(i | a). Parts then draw independently and have `log_chance`: `Static`
    on `Everything(..., distinct=False)`, and `Learned` over all items. Bose, Ling, Cao. Adversarial Contrastive
    Estimation. ACL 2018 (ACE: noise and a generator).

    Args:
        parts: {name: sampler}; the names become `source_names`.
        shares: One for each part, in their order: numbers of at least 0 of any sum. Each, or all together, may be a
            function of the step, which makes a curriculum.
        duplicates: "drop": an id that an earlier part brought to the row is left out, its slot stays empty and is
            counted as "duplicate". "keep": both stay. Repeats within a part, and mixed vectors, are always kept.
        one_draw: Whether slots are independent draws from the mixture, with log_q; needs duplicates="keep".
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
        self,
        parts: Mapping[str, Sampler],
        shares: Any,
        *,
        duplicates: str = "drop",
        one_draw: bool = False,
        on_short: str = "pad",
    ) -> None:
        """Keep the parts; check the shares unless they are functions of the step."""
        if not isinstance(parts, Mapping) or not parts:
            raise_invalid("parts", "a dictionary {name: sampler} of at least one", shown(parts))
        if len(parts) > _MAX_PARTS:
            raise_invalid("parts", f"at most {_MAX_PARTS}", len(parts))
        for name, part in parts.items():
            if not isinstance(name, str) or isinstance(part, type) or not isinstance(part, Sampler):
                rule = "a dictionary {name: sampler}, each with a method sample(query, k, *, rng)"
                raise_invalid("parts", rule, f"{shown(name)}: {type(part).__name__}")
        check_one_of("duplicates", duplicates, ("drop", "keep"))
        check_one_of("on_short", on_short, ON_SHORT)
        if check_bool("one_draw", one_draw):
            if duplicates != "keep":
                raise_invalid("duplicates", '"keep" with one_draw', repr(duplicates))
            for name, part in parts.items():
                if getattr(part, "distinct", True) or not _has_chance(part):
                    rule = "samplers of independent draws with log_chance(query, ids), for one_draw"
                    raise_invalid("parts", rule, f"{name!r}: {shown(part)}")
        self.parts, self.shares, self.one_draw = dict(parts), shares, one_draw
        self.duplicates, self.on_short = duplicates, on_short
        self.distinct = duplicates == "drop" and all(getattr(part, "distinct", None) for part in parts.values())
        ends = shares if isinstance(shares, tuple | list) else (shares,)
        if not any(map(callable, ends)):
            self._sums(0)

    @property
    def needs_main_process(self) -> bool:
        """Whether a part does."""
        return needs_main_process(*self.parts.values())

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives, in the order of the parts unless `one_draw`."""
        sums = self._sums(step_of(query))
        counts, width = wanted_slots(k, len(query), rng)
        if self.one_draw:
            return self._one_draw(query, sums, counts, width, rng)
        start = generator_of(key_from(rng)).random((len(query), 1))
        edges = np.floor(np.round(sums * counts[:, None], 9) + start).astype(np.int64)
        shared = np.diff(edges, axis=1, prepend=0)
        used = [part for part in range(len(self.parts)) if shared[:, part].any()]
        samplers = list(self.parts.values())
        answers = [samplers[part].sample(query, shared[:, part], rng=rng) for part in used]
        row = side_by_side(tuple(self.parts), used, answers, query)
        ids = np.asarray(to_numpy(row.ids))
        again = repeated(row) if self.duplicates == "drop" else np.zeros(ids.shape, np.bool_)
        chosen = take_kept(row, (ids >= 0) & ~again, query, counts, width, self.on_short)
        n_repeated = int(again.sum())
        empty = {EXHAUSTED: chosen.dropped.get(EXHAUSTED, 0) - n_repeated, DUPLICATE: n_repeated}
        dropped = {**row.dropped, **empty}
        return blanked(replace(chosen, dropped={reason: count for reason, count in dropped.items() if count}))

    def _one_draw(
        self, query: Query, sums: NDArray[np.float64], counts: Any, width: int, rng: np.random.Generator
    ) -> Negatives:
        """Slots whose parts are drawn by the shares, one by one, with the log_q of the mixture."""
        drawn = generator_of(key_from(rng)).random((len(query), width))
        part = np.where(np.arange(width) < counts[:, None], np.searchsorted(sums[:-1], drawn, "right"), -1)
        used, samplers = [one for one in range(len(sums)) if (part == one).any()], list(self.parts.values())
        answers = [samplers[one].sample(query, (part == one).sum(axis=1), rng=rng) for one in used]
        row = side_by_side(tuple(self.parts), used, answers, query)
        order, begin = np.full(part.shape, row.shape[1] - 1), 0
        for one, answer in zip(used, answers, strict=True):
            mine = part == one
            order[mine], begin = (begin + np.cumsum(mine, axis=1) - 1)[mine], begin + answer.shape[1]
        ids = np.take_along_axis(np.asarray(to_numpy(row.ids)), order, axis=1)
        places = like_query(order, query)
        chosen = take(row, places, like_query(ids >= 0, query), counts, width, self.on_short)
        shares, log_q = np.diff(sums, prepend=0.0), np.full(ids.shape, -np.inf)
        for share, sampler in zip(shares[shares > 0], np.array(samplers, object)[shares > 0], strict=True):
            log_q = np.logaddexp(log_q, np.log(share) + sampler.log_chance(query, np.maximum(ids, 0)))
        exact = like_query(np.where(ids >= 0, np.minimum(log_q, 0.0), 0.0), query)
        return blanked(replace(chosen, log_q=exact))

    def _sums(self, step: int) -> NDArray[np.float64]:
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


def side_by_side(names: tuple[str, ...], used: Sequence[int], answers: Sequence[Negatives], query: Query) -> Negatives:
    """(B, sum of K + 1) the answers of the parts `used`, in order, and one empty slot at the end of each row."""
    end = np.full((len(query), 1), -1)
    end_ids = like_query(end, query)
    sources = [*(np.full(answer.shape, part, np.int8) for part, answer in zip(used, answers, strict=True))]
    joined = Negatives(
        module_of(end_ids).concatenate([*(answer.ids for answer in answers), end_ids], 1),
        source=like_query(np.concatenate([*sources, end.astype(np.int8)], axis=1), query),
        source_names=names,
        dropped=_added([answer.dropped for answer in answers]),
    )
    together: dict[str, Array] = {}
    for name in (name for name in PER_SLOT if name not in ("ids", "source", "log_q")):
        arrays = [getattr(answer, name) for answer in answers]
        given = [array for array in arrays if array is not None]
        some_lack_it = len(given) < len(arrays)
        if not given or (some_lack_it and name in _IF_ALL):
            continue
        if some_lack_it and name in _ALL_OR_NONE:
            lacking = names[used[next(i for i, array in enumerate(arrays) if array is None)]]
            raise_invalid("parts", f"samplers that all return {name}, or none", f"{lacking!r} without")
        dimensions = {tuple(array.shape[2:]) for array in given}
        if len(dimensions) > 1:
            raise_invalid("parts", f"samplers whose {name} have one dimension", sorted(dimensions))
        like = given[0][:, :0]
        complete = [
            constant(like, answer.shape[1], _DEFAULTS[name]) if array is None else array
            for array, answer in zip(arrays, answers, strict=True)
        ]
        together[name] = module_of(like).concatenate([*complete, constant(like, 1, EMPTY.get(name, 0))], 1)
    return replace(joined, **together)


def repeated(row: Negatives) -> NDArray[np.bool_]:
    """(B, N): slots whose id (with sides: side and id) an earlier part has in the row; mixed vectors never are."""
    ids, source = np.asarray(to_numpy(row.ids)), np.asarray(to_numpy(row.source))
    keys = ids if row.side is None else ids * 3 + np.asarray(to_numpy(row.side))
    mixed = np.zeros(ids.shape, np.bool_) if row.parents is None else np.asarray(to_numpy(row.parents))[:, :, 0] >= 0
    keys = np.where((ids < 0) | mixed, -1 - np.arange(ids.shape[1]), keys)  # each its own
    order = np.argsort(keys, axis=1, kind="stable")  # of one key, the earliest part first
    ordered, parts = np.take_along_axis(keys, order, axis=1), np.take_along_axis(source, order, axis=1)
    starts = np.ones(ids.shape, np.bool_)
    starts[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    first = np.maximum.accumulate(np.where(starts, np.arange(ids.shape[1]), 0), axis=1)
    again = np.empty(ids.shape, np.bool_)
    np.put_along_axis(again, order, parts > np.take_along_axis(parts, first, axis=1), axis=1)
    return again


def _has_chance(part: Any) -> bool:
    """Whether `log_chance` of a part works, tried without rows: the method may depend on the part's pool."""
    if not hasattr(part, "log_chance"):
        return False
    none = np.empty(0, np.int64)
    try:
        part.log_chance(Query(none), none[:, None])
    except NaysayError:
        return False
    return True


def _added(counts: Sequence[Any]) -> dict[str, int]:
    """The sum of the counts for each reason."""
    reasons = {reason for dropped in counts for reason in dropped}
    return {reason: sum(dropped.get(reason, 0) for dropped in counts) for reason in sorted(reasons)}
