"""Mixed: a row's slots from several samplers, by shares that may move with the step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import check_one_of, public, raise_invalid, shown
from naysay.pools._slots import EXHAUSTED, ON_SHORT
from naysay.quantity.schedules import at_step
from naysay.rng import key_from
from naysay.samplers._joined import blanked, repeated, side_by_side
from naysay.samplers._scored import take, wanted_slots
from naysay.samplers._vectors import like_query
from naysay.types import Negatives, Query, Sampler, check_query

DUPLICATE = "duplicate"
_MOST = 127  # parts that an int8 can number


@final
@public
class Mixed:
    """Ask several samplers, each for its share of a row's k slots, and put their answers side by side.

    With shares s of sum 1, part p gets floor(S_p k + u) - floor(S_(p-1) k + u) slots of a row, where S are the running
    sums and u ~ U(0, 1) is one for the row: s_p k on average, exactly so where the S_p k are whole, and k in all. A
    part that gets no slot in the batch is not asked. Slots stand in the order of the parts.

    `source` (B, K) says which part a slot came from; a part's own source is not kept. `scores` and `suspicion` are
    there if all parts give them; `weights`, `relation` and `parents` if one does, the others' slots then having 1, 0
    (negative) and (-1, -1); `vectors` and `side` come from all parts or from none. `dropped` adds up. log_q is None:
    the parts' are those of their own draws. Cost: the parts', and a sort of K ids a row for the duplicates.

    Args:
        parts: {name: sampler}; the names become `source_names`.
        shares: One for each part, in their order: numbers of at least 0, whatever their sum; each, or all together,
            may be a function of the step, which makes a curriculum.
        duplicates: "drop": an id that an earlier part brought to the row is left out, its slot stays empty and is
            counted as "duplicate". "keep": both stay. What a part repeats by itself, and mixed vectors, are never
            touched.
        on_short: "pad" or "raise", if a row has an empty slot in the end.

    Example:
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
        """Keep the parts; numbers are looked at here, functions of the step when they are called."""
        if not isinstance(parts, Mapping) or not parts:
            raise_invalid("parts", "a dictionary {name: sampler} of at least one", shown(parts))
        if len(parts) > _MOST:
            raise_invalid("parts", f"at most {_MOST}", len(parts))
        for name, part in parts.items():
            if not isinstance(name, str) or isinstance(part, type) or not isinstance(part, Sampler):
                rule = "a dictionary {name: sampler}, each with a method sample(query, k, *, rng)"
                raise_invalid("parts", rule, f"{shown(name)}: {type(part).__name__}")
        check_one_of("duplicates", duplicates, ("drop", "keep"))
        check_one_of("on_short", on_short, ON_SHORT)
        self.parts, self.shares = dict(parts), shares
        self.duplicates, self.on_short = duplicates, on_short
        self.distinct = duplicates == "drop" and all(getattr(part, "distinct", None) for part in parts.values())
        ends = shares if isinstance(shares, tuple | list) else (shares,)
        for step in () if any(map(callable, ends)) else (0,):
            self._sums(step)

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """(B, K) negatives, part by part; k is a number, K = ceil(k), realised per row; or (B,) of them."""
        check_query(query)
        sums = self._sums(query.step)
        counts, width = wanted_slots(k, len(query), rng)
        start = np.random.Generator(np.random.Philox(key=int(key_from(rng)))).random((len(query), 1))
        edges = np.floor(np.round(sums * counts[:, None], 9) + start).astype(np.int64)
        shared = np.diff(edges, axis=1, prepend=0)
        asked = [index for index in range(len(self.parts)) if shared[:, index].any()]
        samplers = list(self.parts.values())
        answers = [samplers[index].sample(query, shared[:, index], rng=rng) for index in asked]
        row = side_by_side(tuple(self.parts), asked, answers, query)
        ids = np.asarray(to_numpy(row.ids))
        again = repeated(row) if self.duplicates == "drop" else np.zeros(ids.shape, np.bool_)
        kept = (ids >= 0) & ~again
        order = np.argsort(~kept, axis=1, kind="stable")
        kept = np.take_along_axis(kept, order, axis=1)
        chosen = take(row, like_query(order, query), like_query(kept, query), counts, width, self.on_short, row.scores)
        doubled = int(again.sum())
        empty = {EXHAUSTED: chosen.dropped.get(EXHAUSTED, 0) - doubled, DUPLICATE: doubled}
        dropped = {**row.dropped, **empty}
        return blanked(replace(chosen, dropped={reason: count for reason, count in dropped.items() if count}))

    def _sums(self, step: int) -> NDArray[np.float64]:
        """(parts,) the running sums of the shares at a step, the last of them 1; checked."""
        shares = at_step(self.shares, step)
        if not isinstance(shares, tuple | list | np.ndarray) or len(shares) != len(self.parts):
            raise_invalid("shares", f"one for each of the {len(self.parts)} parts", shown(shares))
        now = [at_step(share, step) for share in shares]
        plain = all(isinstance(share, int | float | np.number) and not isinstance(share, bool) for share in now)
        if not plain or not all(0 <= share < np.inf for share in now) or not sum(now) > 0:
            raise_invalid("shares", "numbers of at least 0, of which one is above 0", shown(now))
        sums = np.cumsum(np.array(now, np.float64))
        return np.asarray(sums / sums[-1])

    def __repr__(self) -> str:
        """The parts and the shares."""
        return f"Mixed({self.parts!r}, shares={self.shares}, duplicates={self.duplicates!r})"
