"""InBatch: the items of the other rows of the batch. The review's mini-batch pool."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import frozen
from naysay._slots import check_ids, like_query
from naysay.checks import check_generator, public
from naysay.kernels.lists import all_entries, draw_entries
from naysay.kernels.threads import draw_in_rows
from naysay.kernels.uniform import TRIES
from naysay.pools import _slots
from naysay.positives import Positives
from naysay.rng import key_from
from naysay.types import Array, Negatives, Query, check_query, positive_ids

Ids = NDArray[np.int64]
# The rows (anchors (B,), positives (B,)) and the entries (items (M,), owners (M,)).
Batch = tuple[Ids, Ids, Ids, Ids]
# Why a row may not use an entry (item, owner), in the order of the compiled loops; the first that holds is counted.
REASONS = ("same item", "same anchor", "known")
_NOTHING_KNOWN = (frozen(np.zeros(1, np.int64)), frozen(np.empty(0, np.int32)), frozen(np.empty(0, np.uint8)))


@final
@public
class InBatch:
    """Draw from the items of the other rows, without the row's own item, its own anchor's items, and what is known.

    The query must have positives: they are the items. No vectors are needed but those of the batch (Henderson et al.
    2017, arXiv 1705.00652; Karpukhin et al. EMNLP 2020). Without the three exclusions, popular items and repeated
    anchors would make positives false negatives.

    log_q is None, because the probability of an item in a batch depends on the loader. If it draws pairs uniformly, the
    probability is about the item's share of the pairs (Yi et al. RecSys 2019).

    Cost: with n=None O(B^2) time and 8 B^2 bytes. A draw is O(1) per slot in expectation, and O(B) once for a row that
    may use hardly any item.

    Args:
        positives: Further pairs to exclude, exactly: positives and ignored pairs.
        distinct: Whether a row has an id at most once (default), or draws are independent. An item of two rows is twice
            as likely to be drawn first.
        on_short: "pad" leaves -1 where nothing is left to draw and counts it in `dropped`; "raise" raises NaysayError.
            It does not apply to n=None.

    Examples:
        >>> import naysay as ns
        >>> InBatch().draw(ns.Query([0, 1, 1], positives=[5, 6, 7]), rng=ns.rng_for(0)).ids.tolist()
        [[-1, 6, 7], [5, -1, -1], [5, -1, -1]]
    """

    def __init__(self, positives: Positives | None = None, *, distinct: bool = True, on_short: str = "pad") -> None:
        """Check the settings."""
        _slots.check_known(positives)
        self.positives = positives
        self.distinct, self.on_short = _slots.check_settings(distinct, on_short)

    def eligible(self, query: Query) -> Array:
        """(B, B) bool in the query's array type, on its device: whether row i may use the item of row j.

        The diagonal is False.
        """
        ids, _ = usable(self._batch(query), known_rows(self.positives))
        return like_query(ids >= 0, query)

    def draw(self, query: Query, n: Any = None, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, n) items of other rows; n is a number, or (B,) numbers.

        With n=None all of them are returned as (B, B): ids[i, j] is the item of row j, or -1 if row i may not use it.
        So column j goes with vector j of the batch, and an item of two rows is in two columns. `dropped` then counts
        the empty slots off the diagonal by the first reason that holds: "same item", "same anchor" or "known".
        """
        batch, known = self._batch(query), known_rows(self.positives)
        if n is None:
            check_generator(rng)
            ids, dropped = usable(batch, known)
            dropped[REASONS[0]] -= len(ids)  # the diagonal
            return Negatives(ids, dropped=dropped)
        counts, width = _slots.slot_counts(n, len(query))
        ids, _ = drawn(key_from(rng), counts, width, batch, known, distinct=self.distinct)
        return Negatives(ids, dropped=_slots.shortfall(self.on_short, ids, counts))

    def _batch(self, query: Query) -> Batch:
        """The rows of the query, which are the entries, too."""
        check_query(query)
        positive_ids(query)  # raises if there are none
        anchors, items = anchors_and_positives(query, self.positives)
        return anchors, items, items, anchors

    def __repr__(self) -> str:
        return _slots.shown_settings(self, self.positives)


def known_rows(positives: Positives | None) -> tuple[NDArray[Any], ...]:
    """The known pairs as compiled loops read them: offsets, ids and filter; all empty if there are none."""
    return _NOTHING_KNOWN if positives is None else positives._rows


def anchors_and_positives(query: Query, positives: Positives | None) -> tuple[Ids, Ids]:
    """The anchors and the positives of a query, checked; -1, which equals no item, where it has none."""
    anchors = _slots.anchors_of(query, None if positives is None else positives.n_anchors)
    if query.positives is None:
        return anchors, np.full(len(anchors), -1, np.int64)
    items = positive_ids(query)
    check_ids("positives", items, None if positives is None else positives.n_items, "items")
    return anchors, items


def usable(batch: Batch, known: tuple[NDArray[Any], ...]) -> tuple[Ids, dict[str, int]]:
    """(B, M): items[j] if row i may use entry j, else -1; and how many it may not use, by reason."""
    ids = np.empty((len(batch[0]), len(batch[2])), np.int64)
    excluded = np.empty((len(ids), len(REASONS)), np.int64)
    draw_in_rows(all_entries, len(ids), 2 * ids.size, _fixed(*batch), known, ids, excluded)
    return ids, dict(zip(REASONS, excluded.sum(axis=0).tolist(), strict=True))


def drawn(
    key: np.uint64, counts: Ids, width: int, batch: Batch, known: tuple[NDArray[Any], ...], *, distinct: bool
) -> tuple[Ids, Ids]:
    """(B, width) items of entries that each row may use, and the places of the entries; -1 where none is left."""
    ids = np.empty((len(counts), width), np.int64)
    places = np.empty_like(ids)
    how = (key, TRIES, not distinct)
    draw_in_rows(draw_entries, len(ids), 4 * ids.size, how, *_fixed(counts), _fixed(*batch), known, ids, places)
    return ids, places


def _fixed(*arrays: Ids) -> tuple[Ids, ...]:
    """The arrays in the one form that loops are compiled for."""
    return tuple(frozen(np.ascontiguousarray(array)) for array in arrays)
