"""What `Cached` is made of: the rows of its cache, changes of (B, size) ids, log_q, and scores over epochs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import frozen, positions
from naysay._slots import of_kind
from naysay._state import Entry
from naysay.arrays import is_torch, module_of, of_type, to_torch
from naysay.checks import raise_invalid
from naysay.kernels.lists import keep_first
from naysay.kernels.threads import in_rows
from naysay.pools._slots import all_filled, anchors_of, triples_of
from naysay.pools.corruption import Corruption
from naysay.positives import Positives
from naysay.rng import generator_of, key_from
from naysay.types import OF_ROWS, RELATION, SIDES, Array, Pool, Query, positive_ids

Ids = NDArray[np.int64]
Floats = NDArray[np.float32]


@final
@dataclass(frozen=True, eq=False)
class CacheRows:
    """The rows of a cache: one for each anchor, or for each key of triples, e.g. (head, relation)."""

    pools: tuple[Pool, ...]  # one for each side that is replaced; one for anchors
    n_rows: int
    known: Positives | None
    corruption: Corruption | None  # None for anchors

    def find(self, query: Query) -> Ids:
        """(B, sides) the row of each side; -1 for a key of no known triple, which has none."""
        if self.corruption is None:
            return anchors_of(query, self.n_rows)[:, None]
        rows = self.corruption.known.index(self.corruption.sides).rows(triples_of(query, self.corruption.known))
        return np.where(rows == self.n_rows - 1, -1, rows)

    def own(self, query: Query) -> Ids | None:
        """(B, sides) the part that a negative of the row must not be: its positive, or the triple's own part."""
        if self.corruption is not None:
            return np.asarray(triples_of(query, self.corruption.known)[:, self.corruption.sides])
        return None if query.positives is None else positive_ids(query)[:, None]

    def side(self, places: int | Ids, ids: Ids) -> NDArray[np.int8] | None:
        """The sides of `ids` as `Negatives.side` has them, from their places among those replaced; None for anchors."""
        if self.corruption is None:
            return None
        return np.asarray(np.array(self.corruption.sides, np.int8)[np.broadcast_to(places, ids.shape)])

    def one_side(self, query: Query, rng: np.random.Generator) -> tuple[Ids, Ids, NDArray[np.float64] | None]:
        """(B,) each: the row of the cache, the place of its side, and the log of its chance, None for anchors."""
        rows = self.find(query)
        place = np.zeros(len(rows), np.int64)
        if self.corruption is None:
            return rows[:, 0], place, None
        chance = self.corruption.chance[triples_of(query, self.corruption.known)[:, RELATION]]
        if rows.shape[1] > 1:
            ends = np.cumsum(chance, axis=1)
            drawn = generator_of(key_from(rng)).random(len(rows))
            place = (drawn[:, None] * ends[:, -1:] >= ends[:, :-1]).sum(axis=1)
        beside = place[:, None]
        chosen = np.take_along_axis(chance, beside, axis=1)[:, 0]
        return np.take_along_axis(rows, beside, axis=1)[:, 0], place, np.log(chosen)

    def fill(self, query: Query, place: Ids, counts: Ids, ids: Ids, rng: np.random.Generator) -> ByPool | None:
        """Write draws of the pool into the rows of `ids` (B, size) that are empty; None if there are none."""
        empty = ids[:, 0] < 0  # rows are filled from the left
        if not empty.any():
            return None
        log_q: NDArray[np.float64] | None = np.zeros(ids.shape)
        for side, pool in enumerate(self.pools):
            index = np.flatnonzero(empty & (place == side))
            if len(index) == 0:
                continue
            drawn = pool.draw(rows_of(query, index), counts[index], rng=rng).numpy()
            ids[index, : drawn.shape[1]] = drawn.ids
            if drawn.log_q is None or log_q is None:
                log_q = None
            else:
                log_q[index, : drawn.shape[1]] = drawn.log_q
        return ByPool(empty, log_q)


def cache_rows(pool: Pool) -> CacheRows:
    """The rows for a pool. Raises if the pool does not say how many anchors there are."""
    if isinstance(pool, Corruption):
        index = pool.known.index(pool.sides)
        pools = tuple(pool.one_side(SIDES[side]) for side in pool.sides)
        return CacheRows(pools, index.known.n_anchors, index.known, pool)
    known = getattr(pool, "positives", None)
    n_rows = getattr(pool, "n_anchors", None) if known is None else known.n_anchors
    if n_rows is None:
        rule = "a pool with `positives` or `n_anchors`, or Corruption"
        raise_invalid("pool", rule, type(pool).__name__, "The cache has a row for each anchor.")
    return CacheRows((pool,), n_rows, known, None)


def rows_of(query: Query, index: Ids) -> Query:
    """Some rows of a query."""
    given = {name: getattr(query, name) for name in OF_ROWS if getattr(query, name) is not None}
    chosen = {
        name: part.index_select(0, to_torch(index, part.device)) if is_torch(part) else part[index]
        for name, part in given.items()
    }
    return Query(**chosen, step=query.step)


# ---- ids and log_q -------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, eq=False)
class ByPool:
    """Rows whose negatives come from the pool, because their cache is empty."""

    rows: NDArray[np.bool_]  # (B,)
    log_q: NDArray[np.float64] | None  # (B, size)


def without(held: Ids, own: Ids | None, place: Ids) -> Ids:
    """The cached ids (B, size) without the row's own one of `own` (B, sides), filled from the left."""
    if own is None:
        return held
    mine = held == (own if own.shape[1] == 1 else np.take_along_axis(own, place[:, None], axis=1))
    return tidied(held, mine, held.shape[1]) if mine.any() else held


def joined(held: Ids, fresh: Ids, width: int) -> Ids:
    """(B, width) the cached ids and the fresh ones that are not among them, each once, filled from the left."""
    both = np.concatenate([held, fresh], axis=1)
    return tidied(both, np.zeros(both.shape, np.bool_), width)


def tidied(ids: Ids, out: NDArray[np.bool_], width: int) -> Ids:
    """(B, width) ids without empty places, repeats and those that are `out`."""
    kept, dropped = np.empty((len(ids), ids.shape[1]), np.int64), np.empty(len(ids), np.int64)
    in_rows(keep_first, len(ids), 2 * ids.size, frozen(np.ascontiguousarray(ids)), out, kept, dropped)
    return np.ascontiguousarray(kept[:, :width])


def in_order(values: Array, rows: Array) -> Array:
    """The values (B, n), in these rows replaced by ones that fall from slot to slot."""
    falling = -np.arange(values.shape[1], dtype=np.float64)
    changed = values + 0
    changed[rows] = of_type(falling, values)
    return changed


def with_bonus(scores: Array, positive: Array, bonus: Array) -> Array:
    """(B, n) sigmoid(score - score of the positive) + bonus."""
    return 0.5 + 0.5 * module_of(scores).tanh(0.5 * (scores - positive[:, None])) + of_kind(bonus, scores)


def log_chances(logits: NDArray[np.float64], order: Ids) -> NDArray[np.float64]:
    """(B, K) log-probability of each chosen slot by softmax, given that the earlier ones are taken."""
    chosen, rest = np.take_along_axis(logits, order, axis=1), logits.copy()
    np.put_along_axis(rest, order, -np.inf, axis=1)
    left = np.logaddexp.reduce(rest, axis=1, initial=-np.inf)[:, None]
    tails = np.logaddexp.accumulate(np.concatenate([left, chosen[:, ::-1]], axis=1), axis=1)[:, :0:-1]
    with np.errstate(invalid="ignore"):  # -inf - -inf, in slots that are empty
        return np.asarray(chosen - tails)


def with_sides(
    ids: Ids, log_q: NDArray[np.float64], log_side: NDArray[np.float64] | None, by_pool: ByPool | None
) -> NDArray[np.float64] | None:
    """log_q (B, K) of ids: the pool's in its rows, or None if it has none; with the chance of the side at first."""
    width = ids.shape[1]
    if log_q.shape[1] < width:
        log_q = np.pad(log_q, ((0, 0), (0, width - log_q.shape[1])))
    if by_pool is not None:
        if by_pool.log_q is None:
            return None
        log_q[by_pool.rows] = by_pool.log_q[by_pool.rows, :width]
    if log_side is not None:
        log_q[:, :1] += log_side[:, None]
    return log_q if all_filled(ids) else np.where(ids >= 0, log_q, 0.0)


# ---- scores over epochs ---------------------------------------------------------------------------------


@final
class ScoreHistory:
    """Scores by epoch: (n_rows, size, epochs) of cached ids and (pairs, epochs) of known positives, NaN for none."""

    def __init__(self, known: Positives, size: int, epochs: int) -> None:
        self.known, self.epochs = known, epochs
        self.scores = np.full((known.n_anchors, size, epochs), np.nan, np.float32)
        self.positive_scores = np.full((len(known), epochs), np.nan, np.float32)

    def begin(self, epoch: int) -> None:
        """Forget the oldest epoch."""
        self.scores[:, :, epoch % self.epochs] = np.nan
        self.positive_scores[:, epoch % self.epochs] = np.nan

    def record(self, epoch: int, rows: Ids, old: Ids, new: Ids, scores: Floats) -> None:
        """Move the scores of the ids `old` (B, size) to the places of `new`, and store this epoch's (B, size)."""
        moved = aligned(old, self.scores[rows], new)
        moved[:, :, epoch % self.epochs] = np.where(new >= 0, scores, np.nan)
        self.scores[rows] = moved

    def record_positives(self, epoch: int, anchors: Ids, items: Ids, scores: Floats) -> None:
        """Store this epoch's scores (B,) of the pairs that are known."""
        place = self._places(anchors, items)
        self.positive_scores[place[place >= 0], epoch % self.epochs] = scores[place >= 0]

    def of(self, anchors: Ids, query: Query) -> tuple[Floats, Floats]:
        """(B, size, epochs) and (B, 1, epochs): the scores of the cached ids and of the query's positives."""
        place = self._places(anchors, positive_ids(query))
        positive = np.where((place >= 0)[:, None], self.positive_scores[place], np.float32(np.nan))
        return self.scores[anchors], positive[:, None, :]

    def _places(self, anchors: Ids, items: Ids) -> Ids:
        return positions(self.known.indptr, self.known.indices, self.known.filter, anchors, items)

    def arrays(self) -> dict[str, Any]:
        """Copies of both arrays."""
        return {"scores": self.scores.copy(), "positive_scores": self.positive_scores.copy()}

    def entries(self) -> dict[str, Entry]:
        """What a state must have."""
        arrays = {"scores": self.scores, "positive_scores": self.positive_scores}
        return {name: Entry(array.shape) for name, array in arrays.items()}

    def set_arrays(self, read: Mapping[str, Any], given: Ids, table: Ids) -> None:
        """Restore checked arrays of the ids `given` (n_rows, size); some may have left the cache's `table` since."""
        self.scores = read["scores"].astype(np.float32)
        self.positive_scores = read["positive_scores"].astype(np.float32)
        changed = np.flatnonzero((given != table).any(axis=1))
        self.scores[changed] = aligned(given[changed], self.scores[changed], table[changed])


def aligned(old: Ids, values: Floats, new: Ids) -> Floats:
    """(B, n, epochs) the values of the ids `old` (B, m) at the places of the same ids in `new` (B, n), else NaN."""
    same = (new[:, :, None] == old[:, None, :]) & (new[:, :, None] >= 0)
    moved = np.take_along_axis(values, same.argmax(axis=2)[:, :, None], axis=1)
    moved[~same.any(axis=2)] = np.nan
    return moved


def deviation(scores: Floats, positive: Floats) -> NDArray[np.float64]:
    """(B, n) the standard deviation of sigmoid(score - positive's) over the epochs that have both; 0 for less than two.

    The sum of squares is divided by the number of epochs, as in the published code.
    """
    chance = sigmoid(scores.astype(np.float64) - positive)
    there = ~np.isnan(chance)
    count = there.sum(axis=2)
    mean = np.where(there, chance, 0.0).sum(axis=2) / np.maximum(count, 1)
    squares = np.where(there, chance - mean[:, :, None], 0.0) ** 2
    return np.where(count >= 2, np.sqrt(squares.sum(axis=2) / np.maximum(count, 1)), 0.0)


def sigmoid(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 / (1 + exp(-values)), without overflow."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * values)))
