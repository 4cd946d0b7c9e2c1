"""Everything: all items that are not known of the anchor, uniformly or by weight. The review's global pool."""

from __future__ import annotations

from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from naysay._rows import distinct_values, frozen, offsets, refrozen
from naysay.arrays import to_numpy
from naysay.checks import as_array, check_all, check_bool, check_kind, check_whole, public, raise_invalid, shown
from naysay.kernels import uniform, weighted
from naysay.kernels.compile import in_python
from naysay.kernels.threads import draw_in_rows
from naysay.pools._slots import (
    all_filled,
    anchors_of,
    asked,
    check_settings,
    given_ids,
    logs,
    shortfall,
    shown_settings,
)
from naysay.pools._times import Times
from naysay.positives import Positives
from naysay.rng import generator_of, key_from
from naysay.types import Negatives, Query, unchecked

# Whole-number weights sum to about this, so that their sums are exact in 64 bits.
_TOTAL = float(1 << 62)
_COMPILED_FROM = 1 << 16  # items from which on compiling the alias table takes less time than plain Python


@final
@public
class Everything:
    """Draw from all items that are not known of the anchor.

    log_q, with w = 1 for uniform draws and W_free the weight of what is not known:
        independent   log w_i - log W_free
        distinct      log w_i - log(W_free - sum of the row's earlier w)

    Cost: O(1) per draw in expectation, whatever the number of items. Weights take 24 bytes per item and 8 per anchor. A
    row whose known items have most of the weight is drawn by rank instead of by rejection.

    Args:
        positives: The pairs to exclude, exactly: positives and ignored pairs.
        weights: (n_items,) finite, at least 0; None is uniform. Weight 0 is never drawn. See `pools.popularity`.
        distinct: Whether a row has an id at most once (default), or draws are independent.
        on_short: "pad" leaves -1 where nothing is left to draw and counts it in `dropped`; "raise" raises NaysayError.
        times: (anchors, items, times), three arrays (n,): when known pairs became known; numbers or dates. A row of a
            query with times excludes the pairs known at its time or before, and draws later ones like any other. Of a
            pair with several times the first counts; one without is always known. A draw then costs
            O(known pairs of its anchors) besides.

    Examples:
        >>> import naysay as ns
        >>> known = ns.Positives.from_pairs([0, 0, 1], [0, 1, 2], n_items=4)
        >>> sorted(Everything(known).draw(ns.Query([0]), 2, rng=ns.rng_for(0)).ids[0].tolist())
        [2, 3]
    """

    def __init__(
        self,
        positives: Positives,
        weights: ArrayLike | None = None,
        distinct: bool = True,
        on_short: str = "pad",
        *,
        times: tuple[ArrayLike, ArrayLike, ArrayLike] | None = None,
    ) -> None:
        """Build the tables of a weighted pool: O(items + pairs), once."""
        check_kind("positives", positives, Positives, "a Positives")
        if positives.n_items == 0:
            raise_invalid("positives", "of at least one item", "0 items")
        if positives.n_items >= 1 << 32:
            raise_invalid("positives", "of fewer than 2^32 items", positives.n_items)
        self.positives = positives
        self.distinct, self.on_short = check_settings(distinct, on_short)
        self._tables = None if weights is None else _weight_tables(positives, weights)
        self._times = None if times is None else Times.of(positives, times)

    def draw(self, query: Query, n: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, n) negatives for the query's anchors; n is a number, or (B,) numbers."""
        return self._drawn(query, n, rng, with_log_q=True)

    def draw_candidates(self, query: Query, n: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw the same ids without log_q, for samplers that then choose some of them."""
        return self._drawn(query, n, rng, with_log_q=False)

    def _drawn(self, query: Query, n: Any, rng: np.random.Generator, *, with_log_q: bool) -> Negatives:
        timed = self._times is not None
        anchors, counts, width, key = asked(query, n, rng, self.positives.n_anchors, timed=timed)
        known, anchors, tables = self._known_at(anchors, query.times)
        ids = np.empty((len(anchors), width), np.int64)
        if tables is not None:
            numbers = np.empty(ids.shape)  # the chance of each slot
        elif self.distinct:
            numbers = np.empty((len(ids), width if with_log_q else 0))  # log_q
        else:
            numbers = np.empty((len(ids), 1))  # the chance of any item of a row
        how, rows, steps = (key, uniform.TRIES, not self.distinct), (anchors, counts), ids.size + 4 * len(ids)
        if tables is None:
            draw_in_rows(uniform.draw, len(ids), steps, how, rows, known._rows, known.n_items, ids, numbers)
        else:
            draw_in_rows(weighted.draw, len(ids), 2 * steps, how, rows, known._rows, tables, ids, numbers)
        log_q = None
        if with_log_q:
            log_q = numbers if tables is None and self.distinct else logs(numbers)
            if log_q.shape[1] == 1:  # one number for each row: as a view where no slot is empty
                log_q = np.broadcast_to(log_q, ids.shape) if all_filled(ids) else np.where(ids >= 0, log_q, 0.0)
        dropped = shortfall(self.on_short, ids, counts)
        return unchecked(Negatives, ids=ids, log_q=log_q, dropped=dropped)

    def _known_at(self, anchors: NDArray[np.int64], times: Any) -> tuple[Positives, NDArray[np.int64], Any]:
        """What is known at times, the anchors' rows in it, and the weight tables of that; all is without times."""
        known, tables = self.positives, self._tables
        if self._times is None or times is None:
            return known, anchors, tables
        known = self._times.known_at(known, anchors, times)
        tables = None if tables is None else (*tables[:2], _known_weights(known, tables[0]))
        return known, frozen(np.arange(len(anchors))), tables

    def log_chance(self, query: Query, ids: Any) -> NDArray[np.float64]:
        """(B, K) the log-probability of ids (B, K) in a draw of one; -inf for what is known, 0 for -1."""
        given = given_ids(ids, self.positives.n_items)
        anchors = anchors_of(query, self.positives.n_anchors, timed=self._times is not None)
        known, anchors, tables = self._known_at(anchors, query.times)
        if tables is None:
            chance = np.full(given.shape, 1.0) / np.maximum(known.n_items - np.diff(known.indptr)[anchors], 1)[:, None]
        else:
            sums, _, taken = tables
            chance = np.diff(sums)[given] / np.maximum(sums[-1] - taken[anchors], 1)[:, None]
        with np.errstate(divide="ignore"):
            log_q = np.log(np.where(known.contains(anchors, np.maximum(given, 0), relation="any"), 0.0, chance))
        return np.where(given < 0, 0.0, log_q)

    def draw_pairs(
        self, n: int, *, rng: np.random.Generator, distinct: bool | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Draw n pairs, uniform over all pairs that are not known: the non-edges of a graph.

        The first call makes an index of 8 bytes per anchor.

        Args:
            n: The number of pairs.
            rng: The source of randomness.
            distinct: Whether a pair comes at most once; by default the pool's own setting.

        Returns:
            (anchors, items), two arrays of length n; shorter only if fewer pairs exist.

        Raises:
            NaysayError: If the pool has weights, or fewer pairs exist and it has on_short="raise".
        """
        if self._tables is not None:
            raise_invalid("weights", "None", "weights", "Weighted draws are per anchor: use draw.")
        wanted = check_whole("n", n, 0)
        once = self.distinct if distinct is None else check_bool("distinct", distinct)
        total = int(self._free_before[-1])
        n_pairs = min(wanted, total) if once or total == 0 else wanted
        if n_pairs < wanted and self.on_short == "raise":
            advice = "Request fewer, or make the pool with on_short='pad'."
            raise_invalid("n", f"at most {total}, the pairs that are not known", wanted, advice)
        generator = generator_of(key_from(rng))
        places = _distinct_places(generator, n_pairs, total) if once else generator.integers(0, max(total, 1), n_pairs)
        anchors = np.searchsorted(self._free_before, places, side="right") - 1
        return anchors, self.positives.nth_negative(anchors, places - self._free_before[anchors])

    @cached_property
    def _free_before(self) -> NDArray[np.int64]:
        """How many unknown pairs the earlier anchors have, (n_anchors + 1,)."""
        return offsets(self.positives.n_items - np.diff(self.positives.indptr))

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(refrozen(state))

    def __repr__(self) -> str:
        return shown_settings(self, self.positives, "uniform" if self._tables is None else "weighted")


def _weight_tables(positives: Positives, weights: ArrayLike) -> tuple[NDArray[Any], ...]:
    """The tables of weighted draws: running sums, the alias table, and the known weight per anchor."""
    given = as_array("weights", to_numpy(weights))
    if given.ndim == 0 or given.dtype.kind not in "biuf":
        got = shown(weights) if given.ndim == 0 else f"dtype {given.dtype}"
        advice = "For weights by popularity pass naysay.pools.popularity(positives)."
        raise_invalid("weights", f"None, or numbers of shape ({positives.n_items},), one for each item", got, advice)
    if given.shape != (positives.n_items,):
        raise_invalid("weights", f"of shape ({positives.n_items},)", f"shape {given.shape}")
    given = given.astype(np.float64, copy=False)
    check_all("weights", given, np.isfinite(given) & (given >= 0), "finite and at least 0")
    if not given.any():
        raise_invalid("weights", "above 0 for at least one item", "all 0")
    scaled = given / given.max()  # first, so that the sum of huge weights stays finite
    whole = np.where(given > 0, np.maximum(np.rint(scaled * (_TOTAL / scaled.sum())), 1), 0).astype(np.int64)
    cumulative = offsets(whole)
    alias = np.empty(2 * len(whole), np.uint64)
    build_alias = weighted.build_alias if len(whole) > _COMPILED_FROM else in_python(weighted.build_alias)
    build_alias(whole, float(cumulative[-1]), alias)
    return frozen(cumulative), frozen(alias), _known_weights(positives, cumulative)


def _known_weights(positives: Positives, cumulative: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n_anchors,) the weight of what is known."""
    # The running sum may pass 2^63 and wrap around; differences of it are exact all the same.
    running = offsets(np.diff(cumulative)[positives.indices])
    return frozen(np.diff(running[positives.indptr]))


def _distinct_places(generator: np.random.Generator, wanted: int, total: int) -> NDArray[np.int64]:
    """`wanted` distinct numbers below `total`, in random order."""
    if 2 * wanted > total:
        return generator.permutation(total)[:wanted]
    places = distinct_values(generator.integers(0, max(total, 1), wanted))
    while len(places) < wanted:  # each round at least halves what is missing, in expectation
        more = generator.integers(0, total, wanted - len(places))
        places = distinct_values(np.concatenate([places, more]))
    return generator.permutation(places)
