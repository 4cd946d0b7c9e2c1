"""Cached: negatives from a few ids per anchor that follow the model's scores from step to step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._lock import Lock
from naysay._slots import Score, like_query, score_slots
from naysay._state import Entry, read_state
from naysay.arrays import for_checkpoints, to_numpy
from naysay.checks import as_floats, check_one_of, check_whole, public, raise_invalid, shown
from naysay.pools._slots import all_filled, check_count, draw_filled, shortfall
from naysay.pools.cache import Cache
from naysay.rng import key_from, rng_for
from naysay.samplers import _cache_rows
from naysay.samplers._cache_rows import Ids
from naysay.samplers._candidates import FromPool, check_parts, number_at, positive_scores, step_of, wanted_slots
from naysay.samplers._top_k import pick, softened, take
from naysay.types import Negatives, Pool, Query, positive_ids

_KEEP, _CHOOSE = ("softmax", "top"), ("uniform", "softmax", "top")


@final
@public
@dataclass(eq=False, repr=False)
class Cached(FromPool):
    """Take negatives from a cache of `size` ids per anchor, which each step renews by score.

    `observe`, once a step, renews the caches of the batch's anchors: candidates are the cached ids and `fresh` draws
    from the pool, and `size` of them stay, without repeats. With keep="softmax" they are drawn from
    softmax(score / temperature); with "top" they are the highest. An anchor that comes twice in a batch is renewed
    once. `sample` takes k of the cached ids: any, by softmax, or the top k. It changes nothing, and an anchor whose
    cache is empty gets its negatives from the pool.

    log_q, of m cached ids without the row's own positive: -log(m - slot) if choose="uniform"; by softmax, score /
    temperature minus the logsumexp of the ids that are left; exact given the cache. It is None for "top". With size =
    fresh = 1 and a fixed model the update is Barker's Markov chain: the cached id is a draw from softmax(score /
    temperature) over all free items, which the cache reaches with two scores a step.

    Triples (pool=Corruption) have a cache for each (relation, tail), with heads, and each (head, relation), with tails.
    All negatives of a row replace one side, drawn by the pool's chances (`choice="bernoulli"`), and log_q of the first
    slot contains that chance. A triple with a key that is in no known triple has no cache, and draws from the pool.

    With history=H the choice "top" takes the highest P + bonus * std(P) of P = sigmoid(score - score of the positive).
    The deviation is over the last H epochs (divided by their number) for ids that were cached in at least two of them,
    else 0. Call `update` after each epoch.

    Zhang, Yao, Shao, Chen. NSCaching: Simple and Efficient Negative Sampling for Knowledge Graph Embedding. ICDE 2019
    (uniform choice; lazy update: `every`). Ding, Quan, Yao, Li, Jin. Simplify and Robustify Negative Sampling for
    Implicit Collaborative Filtering. NeurIPS 2020 (`history` and `bonus`; its code records whole pools, here only
    cached ids have a history). Both codes let an id enter the cache twice, and NSCaching's lets known triples enter.

    Cost: 8 bytes for each of the places of all anchors, and 4 more per epoch of history. `sample` scores nothing if
    choose="uniform", else (B, size). `observe` scores (B, size + fresh), for triples once for each side.

    Args:
        pool: Where fresh ids come from. It must have `positives` or `n_anchors`, or be a `Corruption`.
        score: As in `Dynamic`.
        size: The number of cached ids per anchor.
        fresh: The number of draws from the pool at each renewal.
        keep: "softmax" or "top": which candidates stay in the cache.
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
    _rows: _cache_rows.CacheRows = field(init=False)
    _cache: Cache = field(init=False)
    _lock: Lock = field(init=False)

    def __post_init__(self) -> None:
        check_parts(self.pool, self.score, self.on_short)
        self.size, self.fresh = check_count("size", self.size), check_count("fresh", self.fresh)
        check_one_of("keep", self.keep, _KEEP)
        check_one_of("choose", self.choose, _CHOOSE)
        check_whole("every", self.every, 1)
        check_whole("seed", self.seed, 0)
        check_whole("history", self.history, 0)
        self._settings(None)
        if "softmax" not in (self.keep, self.choose) and self.temperature != 1.0:
            raise_invalid("temperature", 'left out unless `keep` or `choose` is "softmax"', shown(self.temperature))
        self._rows = _cache_rows.cache_rows(self.pool)
        self._cache = Cache(self._rows.n_rows, self.size, self._rows.known)
        self._lock = Lock()  # made after the cache's: it is taken first
        self._renewals = self._epoch = 0
        self._history = self._new_history()

    def _new_history(self) -> _cache_rows.ScoreHistory | None:
        """An empty history, or None. Raises if the settings do not fit each other."""
        if self.history == 0:
            if self.bonus != 0.0:
                raise_invalid("bonus", "left out without `history`", shown(self.bonus))
            return None
        if self.history == 1:
            raise_invalid("history", "0 or at least 2 epochs", 1, "One score has no deviation.")
        if self.choose != "top" or self.every != 1:
            got = f"choose={self.choose!r}, every={self.every}"
            raise_invalid("history", '0 unless `choose` is "top" and `every` is 1', got)
        if self._rows.corruption is not None or self._rows.known is None:
            raise_invalid("history", "0 unless the pool has `positives`", self.history)
        return _cache_rows.ScoreHistory(self._rows.known, self.size, self.history)

    @property
    def cache(self) -> Cache:
        """The cached ids. For triples its rows are those of the keys, side by side."""
        return self._cache

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives; the highest first if choose="top", else the first drawn first."""
        temperature, bonus = self._settings(step_of(query))
        counts, width = wanted_slots(k, len(query), rng, size=self.size)
        rows, place, log_side = self._rows.one_side(query, rng)
        with self._lock:
            held = self._held(rows)
            past = None if self._history is None or not bonus else self._history.of(rows, query)
        ids = _cache_rows.without(held, self._rows.own(query), place)
        by_pool = self._rows.fill(query, place, counts, ids, rng)
        side = self._rows.side(place[:, None], ids)
        if self.choose == "uniform":
            taken, log_q = draw_filled(ids, counts, width, key_from(rng), distinct=True)
            if by_pool is not None:
                taken[by_pool.rows] = ids[by_pool.rows, :width]
            chance = _cache_rows.with_sides(taken, log_q, log_side, by_pool)
            sides = None if side is None else np.where(taken >= 0, side[:, :width], np.int8(-1))
            short = shortfall(self.on_short, taken, counts)
            found, logs, sides = (part if part is None else like_query(part, query) for part in (taken, chance, sides))
            return Negatives(found, log_q=logs, side=sides, dropped=short)
        found = Negatives(ids, side=side).like(query)
        scores = score_slots(self.score, query, found.ids, found.side)
        values = softened(scores, temperature, rng) if self.choose == "softmax" else scores
        if past is not None:
            deviations = _cache_rows.deviation(_cache_rows.aligned(held, past[0], ids), past[1])
            values = _cache_rows.with_bonus(
                scores, positive_scores(self.score, query), like_query(bonus * deviations, query)
            )
        if by_pool is not None:  # the pool has chosen for these rows: their order stays
            values = _cache_rows.in_order(values, like_query(by_pool.rows, query))
        order, kept = pick(values, scores > -np.inf, width)
        answer = take(found, order, kept, counts, width, self.on_short, scores)
        if self.choose == "top":
            return answer
        logits = np.asarray(to_numpy(scores), np.float64) / temperature
        chances = _cache_rows.log_chances(logits, to_numpy(order))
        chance = _cache_rows.with_sides(np.asarray(to_numpy(answer.ids)), chances, log_side, by_pool)
        return answer if chance is None else replace(answer, log_q=like_query(chance, query))

    def observe(self, query: Query, negatives: Any = None, *, positive_scores: Any = None, vectors: Any = None) -> None:
        """Renew the caches of the query's anchors. Call it once a step.

        Args:
            query: The anchors; with positives if there is a `history`.
            negatives: Not used.
            positive_scores: (B,) the scores of the positives, for a history; computed if not given.
            vectors: Not used.
        """
        temperature, _ = self._settings(step_of(query))
        rows = self._rows.find(query)
        if self._history is not None:
            own = self._own_scores(query, positive_scores)
            with self._lock:
                self._history.record_positives(self._epoch, rows[:, 0], positive_ids(query), own)
        with self._lock:
            if self._epoch % self.every:
                return
            number, self._renewals = self._renewals, self._renewals + 1
        rng = rng_for(self.seed, number)
        for place in range(rows.shape[1]):
            order = np.argsort(rows[:, place], kind="stable")
            first = order[np.diff(rows[order, place], prepend=-1) > 0]  # of each row of the cache; -1 is none
            if len(first):
                self._renew(_cache_rows.rows_of(query, first), rows[first, place], place, temperature, rng)

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
            history = {} if self._history is None else self._history.arrays()
            return {**self._cache.state(), "renewals": self._renewals, "epoch": self._epoch, **history}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned, without ids that have become known since then."""
        count = Entry(whole=True)
        entries = {"renewals": count, "epoch": count, **({} if self._history is None else self._history.entries())}
        read = read_state(state, entries, others=("table",))
        with self._lock:
            self._cache.restore({"table": state["table"]} if "table" in state else {})
            self._renewals, self._epoch = int(read["renewals"]), int(read["epoch"])
            if self._history is not None:
                given = np.asarray(to_numpy(state["table"])).astype(np.int64)
                self._history.set_arrays(read, given, self._cache.get(np.arange(self._rows.n_rows)))

    def _settings(self, step: int | None) -> tuple[Any, Any]:
        """The temperature and the bonus at a step."""
        temperature = number_at("temperature", self.temperature, step, above=0, finite=True)
        return temperature, number_at("bonus", self.bonus, step, at_least=0, finite=True)

    def _held(self, rows: Ids) -> Ids:
        """(B, size) the cached ids; none where the row is -1, which only keys of triples can be."""
        if self._rows.corruption is None:
            return self._cache.get(rows)
        held = self._cache.get(np.maximum(rows, 0))
        held[rows < 0] = -1
        return held

    def _own_scores(self, query: Query, given: Any) -> NDArray[np.float32]:
        """(B,) the scores of the positives: those given, or the model's."""
        own = positive_scores(self.score, query) if given is None else given
        scores = as_floats("positive_scores", to_numpy(own))
        if scores.shape != (len(query),):
            raise_invalid("positive_scores", f"of shape ({len(query)},)", f"shape {scores.shape}")
        return scores.astype(np.float32)

    def _renew(self, query: Query, rows: Ids, place: int, temperature: float, rng: np.random.Generator) -> None:
        """Keep `size` of the cached ids and fresh ones, for different rows."""
        with self._lock:
            held = self._cache.get(rows)
        wanted = self.fresh if all_filled(held) else self.fresh + np.count_nonzero(held < 0, axis=1)
        draw = getattr(self._rows.pools[place], "draw_candidates", self._rows.pools[place].draw)
        fresh = draw(query, wanted, rng=rng).numpy().ids
        ids = _cache_rows.joined(held, fresh, self.size + self.fresh)
        side = self._rows.side(place, ids)
        scores = score_slots(
            self.score, query, like_query(ids, query), None if side is None else like_query(side, query)
        )
        values = softened(scores, temperature, rng) if self.keep == "softmax" else scores
        order = np.argsort(-np.asarray(to_numpy(values)), axis=1)[:, : self.size]  # quicker than a part, for so many
        stays = ids.reshape(-1).take(order + ids.shape[1] * np.arange(len(ids))[:, None])
        with self._lock:
            old = None if self._history is None else self._cache.get(rows)
            self._cache._store(rows, stays)  # the pool draws nothing that is known
            if self._history is not None and old is not None:
                kept = np.take_along_axis(np.asarray(to_numpy(scores)), order, axis=1)
                self._history.record(self._epoch, rows, old, stays, kept)
