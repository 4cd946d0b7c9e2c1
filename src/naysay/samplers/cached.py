"""Cached: negatives from a few ids per anchor that follow the model's scores from step to step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._lock import Lock
from naysay._rows import frozen, positions
from naysay._slots import Score, check_ids, check_score, like_query, of_kind, score_slots
from naysay._state import Entry, read_state
from naysay.arrays import for_checkpoints, module_of, of_type, to_numpy
from naysay.checks import as_floats, check_one_of, check_whole, public, raise_invalid, shown
from naysay.kernels.lists import keep_first
from naysay.kernels.threads import in_rows
from naysay.pools._slots import (
    all_filled,
    anchors_of,
    check_count,
    draw_filled,
    raise_invalid_times,
    shortfall,
    triples_of,
)
from naysay.pools.corruption import Corruption
from naysay.positives import Positives
from naysay.rng import generator_of, key_from, rng_for
from naysay.samplers._choose import Floats, Ids, draw_independent, pick, rows_of, softened, take, wanted_slots
from naysay.samplers._settings import FromPool, check_on_short, check_pool, number
from naysay.samplers.scores import positive_scores
from naysay.types import RELATION, SIDES, Array, Negatives, Pool, Query, check_query, positive_ids

__all__ = ["Cached"]


@final
@public
@dataclass(eq=False, repr=False)
class Cached(FromPool):
    """Take negatives from a cache of `size` ids per anchor, which each step renews by score.

    `observe`, once a step, renews the caches of the batch's anchors: candidates are the cached ids and `fresh` draws
    from the pool, and `size` of them stay, without repeats. `sample` takes k of the cached ids and changes nothing; an
    anchor whose cache is empty gets its negatives from the pool. With choose="uniform" log_q is exact given the cache:
    -log(m - slot) of m cached ids without the row's own positive; otherwise, and for triples, it is None. With
    size = fresh = 1 and a fixed model the update is Barker's Markov chain: the cached id is a draw from
    softmax(score / temperature) over all free items.

    Triples (pool=Corruption) have a cache for each (relation, tail), with heads, and each (head, relation), with tails.
    All negatives of a row replace one side, drawn by the pool's chances (`choice="bernoulli"`). A triple with a key
    that is in no known triple has no cache, and draws from the pool.

    With history=H the choice "top" takes the highest P + bonus * std(P) of P = sigmoid(score - score of the positive).
    The deviation is over the last H epochs (divided by their number) for ids that were cached in at least two of them,
    else 0. Call `update` after each epoch.

    Zhang, Yao, Shao, Chen. NSCaching. ICDE 2019 (lazy update: `every`). Ding, Quan, Yao, Li, Jin. Simplify and
    Robustify Negative Sampling for Implicit Collaborative Filtering. NeurIPS 2020 (SRNS: `history` and `bonus`).

    Cost: 8 bytes for each of the places of all anchors, and 4 more per epoch of history. `sample` scores nothing if
    choose="uniform", else (B, size); `observe` scores (B, size + fresh).

    Args:
        pool: Where fresh ids come from. It must have `positives` or `n_anchors`, or be a `Corruption`.
        score: As in `Dynamic`.
        size: The number of cached ids per anchor.
        fresh: The number of draws from the pool at each renewal.
        keep: Which candidates stay in the cache: "softmax", by softmax(score / temperature), or "top", the highest.
        choose: "uniform", "softmax" or "top": which cached ids are taken.
        temperature: Of both softmaxes; a number above 0, or a function of the step.
        every: Renew only in every n-th epoch (NSCaching's lazy update). `update` counts epochs.
        history: The number of epochs over which the deviation is taken, at least 2; 0 for none.
        bonus: The weight of the deviation, or a function of the step.
        seed: Of the renewals; each process of a distributed run needs its own.
        on_short: "pad" or "raise", if a row has fewer ids than k.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> pool = ns.pools.Everything(ns.Positives.from_pairs([0, 1], [9, 8], n_items=10))
        >>> sampler = Cached(pool, lambda anchors, ids: ids * 1.0, size=2, fresh=8, keep="top")
        >>> query = ns.Query([0, 1], positives=[9, 8])
        >>> for step in range(10):
        ...     negatives = sampler.sample(query, 2, rng=ns.rng_for(0, step))
        ...     sampler.observe(query, negatives)
        >>> np.sort(sampler.sample(query, 2, rng=ns.rng_for(0, 10)).ids).tolist()
        [[7, 8], [7, 9]]
    """

    needs_main_process = True  # its draws depend on what it was taught in the training loop

    pool: Pool
    score: Score
    size: int
    fresh: int
    _: KW_ONLY
    keep: str = "softmax"
    choose: str = "uniform"
    temperature: Any = 1.0
    every: int = 1
    history: int = 0
    bonus: Any = 0.0
    seed: int = 0
    on_short: str = "pad"
    _lock: Lock = field(init=False)

    def __post_init__(self) -> None:
        check_pool(self.pool)
        check_score(self.score)
        check_on_short(self.on_short)
        self.size, self.fresh = check_count("size", self.size), check_count("fresh", self.fresh)
        check_one_of("keep", self.keep, ("softmax", "top"))
        check_one_of("choose", self.choose, ("uniform", "softmax", "top"))
        check_whole("every", self.every, 1)
        check_whole("seed", self.seed, 0)
        check_whole("history", self.history, 0)
        self._temperature = number("temperature", self.temperature, above=0, finite=True)
        self._bonus = number("bonus", self.bonus, at_least=0, finite=True)
        if "softmax" not in (self.keep, self.choose) and self.temperature != 1.0:
            raise_invalid("temperature", 'left out unless `keep` or `choose` is "softmax"', shown(self.temperature))
        self._rows = _rows_for(self.pool)
        self._check_history()
        self._table = np.full((self._rows.n_rows, self.size), -1, np.int64)  # rows are filled from the left
        self._history = None if self.history == 0 else _History(self._rows.known, self.size, self.history)
        self._lock = Lock()
        self._renewals = self._epoch = 0

    def _check_history(self) -> None:
        if self.history == 0:
            if self.bonus != 0.0:
                raise_invalid("bonus", "left out without `history`", shown(self.bonus))
            return
        if self.history == 1:
            raise_invalid("history", "0 or at least 2 epochs", 1, "One score has no deviation.")
        if self.choose != "top" or self.every != 1:
            got = f"choose={self.choose!r}, every={self.every}"
            raise_invalid("history", '0 unless `choose` is "top" and `every` is 1', got)
        if isinstance(self.pool, Corruption) or self._rows.known is None:
            raise_invalid("history", "0 unless the pool has `positives`", self.history)

    @property
    def cache(self) -> Ids:
        """(n_rows, size) a copy of the cached ids, -1 for none. For triples its rows are those of the keys."""
        with self._lock:
            return self._table.copy()

    # ---- sample -----------------------------------------------------------------------------------------

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives; the highest first if choose="top", else the first drawn first."""
        check_query(query)
        counts, width = wanted_slots(k, len(query), rng, size=self.size)
        rows, place = self._rows.of_one_side(query, rng)
        bonus = self._bonus(query.step)
        with self._lock:
            held = np.where(rows[:, None] < 0, -1, self._table[np.maximum(rows, 0)])  # a key of triples may have no row
            past = None if self._history is None or not bonus else self._history.of(rows, query)
        ids = _without(held, self._rows.excluded(query, place))
        by_pool, pool_log_q = self._rows.fill_by_pool(query, place, counts, ids, rng)
        if self.choose == "uniform":
            taken, log_q = draw_filled(ids, counts, width, key_from(rng), distinct=True)
            taken[by_pool] = ids[by_pool, :width]  # the pool has chosen for these rows
            if pool_log_q is not None:
                log_q[by_pool] = pool_log_q[by_pool, :width]
                log_q = np.where(taken >= 0, log_q, 0.0)
            return Negatives(
                taken,
                log_q=None if pool_log_q is None else log_q,
                side=self._rows.side(place[:, None], taken),
                dropped=shortfall(self.on_short, taken, counts),
            ).like(query)
        candidates = Negatives(ids, side=self._rows.side(place[:, None], ids)).like(query)
        scores = score_slots(self.score, query, candidates.ids, candidates.side)
        values = softened(scores, self._temperature(query.step), rng) if self.choose == "softmax" else scores
        if past is not None:
            past_scores, past_scores_of_positives = past
            deviations = _deviation(_moved(held, past_scores, ids), past_scores_of_positives)
            above_positive = scores - positive_scores(self.score, query)[:, None]
            chance = 0.5 + 0.5 * module_of(scores).tanh(0.5 * above_positive)  # the sigmoid, without overflow
            values = chance + of_kind(like_query(bonus * deviations, query), scores)
        if by_pool.any():  # the order of what the pool has chosen stays
            values = _falling(values, like_query(by_pool, query))
        return take(candidates, pick(values, scores > -np.inf, width), counts, width, self.on_short, scores)

    # ---- learn ------------------------------------------------------------------------------------------

    def observe(self, query: Query, negatives: Any = None, *, positive_scores: Any = None, vectors: Any = None) -> None:
        """Renew the caches of the query's anchors. Call it once a step.

        With a `history` the query has positives, and `positive_scores` (B,) are computed if not given. The rest is not
        used.
        """
        check_query(query)
        rows = self._rows.of(query)
        if self._history is not None:
            own = self._own_scores(query, positive_scores)
            with self._lock:
                self._history.record_positives(self._epoch, rows[:, 0], positive_ids(query), own)
        with self._lock:
            if self._epoch % self.every:
                return
            renewal, self._renewals = self._renewals, self._renewals + 1
        rng = rng_for(self.seed, renewal)
        for place in range(rows.shape[1]):
            distinct_rows, first = np.unique(rows[:, place], return_index=True)
            first = first[distinct_rows >= 0]
            if len(first):
                self._renew(rows_of(query, first), rows[first, place], place, rng)

    def _own_scores(self, query: Query, given: Any) -> NDArray[np.float32]:
        """(B,) the scores of the positives: those given, or the model's."""
        own = positive_scores(self.score, query) if given is None else given
        scores = as_floats("positive_scores", to_numpy(own))
        if scores.shape != (len(query),):
            raise_invalid("positive_scores", f"of shape ({len(query)},)", f"shape {scores.shape}")
        return scores.astype(np.float32)

    def _renew(self, query: Query, rows: Ids, place: int, rng: np.random.Generator) -> None:
        """Keep `size` of the cached ids and fresh ones, for different rows."""
        with self._lock:
            held = self._table[rows]
        wanted = self.fresh if all_filled(held) else self.fresh + np.count_nonzero(held < 0, axis=1)
        pool = self._rows.pools[place]
        fresh = getattr(pool, "draw_candidates", pool.draw)(query, wanted, rng=rng).numpy().ids
        both = np.concatenate([held, fresh], axis=1)
        ids = _tidied(both, np.zeros(both.shape, np.bool_), self.size + self.fresh)
        candidates = Negatives(ids, side=self._rows.side(np.full((len(ids), 1), place), ids)).like(query)
        scores = score_slots(self.score, query, candidates.ids, candidates.side)
        temperature = self._temperature(query.step)
        values = softened(scores, temperature, rng) if self.keep == "softmax" else scores
        order = np.argsort(-np.asarray(to_numpy(values)), axis=1)[:, : self.size]  # quicker than a part, for so many
        stay = np.take_along_axis(ids, order, axis=1)
        with self._lock:
            old = self._table[rows]
            self._table[rows] = stay  # the pool draws nothing that is known
            if self._history is not None:
                kept = np.take_along_axis(np.asarray(to_numpy(scores)), order, axis=1)
                self._history.record(self._epoch, rows, old, stay, kept)

    def update(self) -> None:
        """Count an epoch, for `every` and `history`. Call it after each epoch."""
        with self._lock:
            self._epoch += 1
            if self._history is not None:
                self._history.begin(self._epoch)

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """All that the next sample and observe depend on, apart from the settings."""
        with self._lock:
            state = {"table": self._table.copy(), "renewals": self._renewals, "epoch": self._epoch}
            if self._history is not None:
                state["scores"] = self._history.scores.copy()
                state["positive_scores"] = self._history.positive_scores.copy()
            return state

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned, without ids that have become known since then."""
        entries = {
            "table": Entry(self._table.shape, whole=True),
            "renewals": Entry(whole=True),
            "epoch": Entry(whole=True),
        }
        if self._history is not None:
            entries["scores"] = Entry(self._history.scores.shape)
            entries["positive_scores"] = Entry(self._history.positive_scores.shape)
        read = read_state(state, entries)
        given, known = read["table"], self._rows.known
        check_ids("table", given, None if known is None else known.n_items, "items", least=-1)
        now_known = np.zeros(given.shape, np.bool_)
        if known is not None:
            now_known = known.contains(np.arange(len(given)), given, relation="any")
        table = _tidied(given, now_known, self.size)
        with self._lock:
            self._table = table
            self._renewals, self._epoch = int(read["renewals"]), int(read["epoch"])
            if self._history is not None:
                scores = read["scores"].astype(np.float32)
                changed = np.flatnonzero((given != table).any(axis=1))
                scores[changed] = _moved(given[changed], scores[changed], table[changed])
                self._history.scores = scores
                self._history.positive_scores = read["positive_scores"].astype(np.float32)


# ---- the rows of a cache --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of a cache: one for each anchor, or for each key of triples, e.g. (head, relation).

    A place is the index of a side among those that are replaced; for anchors it is 0.
    """

    pools: tuple[Pool, ...]  # one for each place
    n_rows: int
    known: Positives | None
    corruption: Corruption | None  # None for anchors

    def of(self, query: Query) -> Ids:
        """(B, places) the row of each side; -1 for a key of no known triple, which has none."""
        if self.corruption is None:
            if query.times is not None:
                raise_invalid_times("A cache has one row for each anchor, for all times.")
            return anchors_of(query, self.n_rows)[:, None]
        index = self.corruption.known.index(self.corruption.sides)
        rows = index.rows(triples_of(query, self.corruption.known))
        return np.where(rows == self.n_rows - 1, -1, rows)

    def of_one_side(self, query: Query, rng: np.random.Generator) -> tuple[Ids, Ids]:
        """(B,) each: the row of the cache, and the place of its side, which is drawn."""
        rows = self.of(query)
        place = np.zeros(len(rows), np.int64)
        if self.corruption is not None and rows.shape[1] > 1:
            chance = self.corruption.chance[triples_of(query, self.corruption.known)[:, RELATION]]
            place = draw_independent(chance, 1, generator_of(key_from(rng)))[:, 0]
        return rows[np.arange(len(rows)), place], place

    def excluded(self, query: Query, place: Ids) -> Ids | None:
        """(B, 1) the id that a negative of the row must not be: its positive, or the triple's own part."""
        if self.corruption is not None:
            own = triples_of(query, self.corruption.known)[:, self.corruption.sides]
            return np.asarray(np.take_along_axis(own, place[:, None], axis=1))
        return None if query.positives is None else positive_ids(query)[:, None]

    def side(self, places: Ids, ids: Ids) -> NDArray[np.int8] | None:
        """(B, n) the sides of `ids` (B, n), from places (B, 1); -1 where a slot is empty, None for anchors."""
        if self.corruption is None:
            return None
        sides = np.array(self.corruption.sides, np.int8)[places]
        return np.where(ids >= 0, sides, np.int8(-1))

    def fill_by_pool(
        self, query: Query, place: Ids, counts: Ids, ids: Ids, rng: np.random.Generator
    ) -> tuple[NDArray[np.bool_], Floats | None]:
        """Write draws of the pool into the rows of `ids` (B, size) that are empty.

        Returns which rows those are (B,), and the pool's log_q (B, size), None if it has none, and for triples.
        """
        empty = ids[:, 0] < 0  # rows are filled from the left
        log_q: Floats | None = np.zeros(ids.shape) if self.corruption is None else None
        for at, pool in enumerate(self.pools):
            index = np.flatnonzero(empty & (place == at))
            if len(index) == 0:
                continue
            drawn = pool.draw(rows_of(query, index), counts[index], rng=rng).numpy()
            ids[index, : drawn.shape[1]] = drawn.ids
            if drawn.log_q is None or log_q is None:
                log_q = None
            else:
                log_q[index, : drawn.shape[1]] = drawn.log_q
        return empty, log_q


def _rows_for(pool: Pool) -> _Rows:
    """The rows for a pool. Raises if the pool does not say how many anchors there are."""
    if isinstance(pool, Corruption):
        index = pool.known.index(pool.sides)
        pools = tuple(pool.one_side(SIDES[side]) for side in pool.sides)
        return _Rows(pools, index.known.n_anchors, index.known, pool)
    known = getattr(pool, "positives", None)
    n_rows = getattr(pool, "n_anchors", None) if known is None else known.n_anchors
    if n_rows is None:
        rule = "a pool with `positives` or `n_anchors`, or Corruption"
        raise_invalid("pool", rule, type(pool).__name__, "The cache has a row for each anchor.")
    return _Rows((pool,), n_rows, known, None)


def _without(held: Ids, excluded: Ids | None) -> Ids:
    """The cached ids (B, size) without those of `excluded` (B, 1), filled from the left."""
    if excluded is None:
        return held
    found = held == excluded
    return _tidied(held, found, held.shape[1]) if found.any() else held


def _tidied(ids: Ids, leave_out: NDArray[np.bool_], width: int) -> Ids:
    """(B, width) ids without empty places, repeats and those to leave out, filled from the left."""
    kept = np.empty(ids.shape, np.int64)
    in_rows(keep_first, len(ids), 2 * ids.size, frozen(np.ascontiguousarray(ids)), leave_out, kept)
    return np.ascontiguousarray(kept[:, :width])


def _falling(values: Array, rows: Array) -> Array:
    """The values (B, n), in these rows replaced by ones that fall from slot to slot."""
    changed = values + 0
    changed[rows] = of_type(-np.arange(values.shape[1], dtype=np.float64), values)
    return changed


# ---- scores over epochs ---------------------------------------------------------------------------------


class _History:
    """Scores by epoch: (n_rows, size, epochs) of cached ids and (pairs, epochs) of known positives, NaN for none."""

    def __init__(self, known: Any, size: int, epochs: int) -> None:
        self.known, self.epochs = known, epochs
        self.scores = np.full((known.n_anchors, size, epochs), np.nan, np.float32)
        self.positive_scores = np.full((len(known), epochs), np.nan, np.float32)

    def begin(self, epoch: int) -> None:
        """Forget the oldest epoch."""
        self.scores[:, :, epoch % self.epochs] = np.nan
        self.positive_scores[:, epoch % self.epochs] = np.nan

    def record(self, epoch: int, rows: Ids, old: Ids, new: Ids, scores: NDArray[Any]) -> None:
        """Move the scores of the ids `old` (B, size) to the places of `new`, and store this epoch's (B, size)."""
        moved = _moved(old, self.scores[rows], new)
        moved[:, :, epoch % self.epochs] = np.where(new >= 0, scores, np.nan)
        self.scores[rows] = moved

    def record_positives(self, epoch: int, anchors: Ids, items: Ids, scores: NDArray[Any]) -> None:
        """Store this epoch's scores (B,) of the pairs that are known."""
        place = self._places(anchors, items)
        self.positive_scores[place[place >= 0], epoch % self.epochs] = scores[place >= 0]

    def of(self, anchors: Ids, query: Query) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """(B, size, epochs) and (B, 1, epochs): the scores of the cached ids and of the query's positives."""
        place = self._places(anchors, positive_ids(query))
        known = place >= 0
        positive = np.full((len(place), self.epochs), np.nan, np.float32)
        positive[known] = self.positive_scores[place[known]]
        return self.scores[anchors], positive[:, None, :]

    def _places(self, anchors: Ids, items: Ids) -> Ids:
        return positions(self.known.indptr, self.known.indices, self.known.filter, anchors, items)


def _moved(old: Ids, values: NDArray[np.float32], new: Ids) -> NDArray[np.float32]:
    """(B, n, epochs) the values of the ids `old` (B, m) at the places of the same ids in `new` (B, n), else NaN."""
    same = (new[:, :, None] == old[:, None, :]) & (new[:, :, None] >= 0)
    moved = np.take_along_axis(values, same.argmax(axis=2)[:, :, None], axis=1)
    moved[~same.any(axis=2)] = np.nan
    return moved


def _deviation(scores: NDArray[np.float32], positive: NDArray[np.float32]) -> Floats:
    """(B, n) the standard deviation of sigmoid(score - positive's) over the epochs that have both; 0 for less than two.

    The sum of squares is divided by the number of epochs, as in the published code.
    """
    chance = 0.5 * (1.0 + np.tanh(0.5 * (scores.astype(np.float64) - positive)))  # the sigmoid, without overflow
    there = ~np.isnan(chance)
    count = there.sum(axis=2)
    mean = np.where(there, chance, 0.0).sum(axis=2) / np.maximum(count, 1)
    squares = np.where(there, chance - mean[:, :, None], 0.0) ** 2
    return np.where(count >= 2, np.sqrt(squares.sum(axis=2) / np.maximum(count, 1)), 0.0)
