"""Cache: a few candidates per anchor, which a sampler updates as the model learns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from naysay._lock import Lock
from naysay._rows import frozen
from naysay._slots import check_ids
from naysay.arrays import for_checkpoints, to_numpy
from naysay.checks import check_kind, check_lengths, check_range, public, raise_invalid, shown, whole_numbers
from naysay.kernels.lists import keep_first
from naysay.kernels.threads import in_rows
from naysay.pools import _slots
from naysay.positives import Positives
from naysay.types import Negatives, Query


@final
@public
class Cache:
    """Draw from the candidates that were last put for the anchor.

    Draws are uniform over the m distinct candidates of an anchor. log_q, exact given the cache:
        independent   -log m
        distinct      -log(m - slot)
    A sampler decides how to update it, from the cache and new draws: by score (Zhang et al. NSCaching. ICDE 2019) or
    by score and its variance over epochs (Ding et al. SRNS. NeurIPS 2020). One thread may put while others draw.

    Cost: 8 bytes for each of n_anchors x size places; O(size) per row and O(1) per draw.

    Args:
        n_anchors: The number of anchors.
        size: The maximum number of candidates per anchor.
        positives: The pairs to exclude, exactly: positives and ignored pairs.
        distinct: Whether a row has an id at most once (default), or draws are independent.
        on_short: "pad" leaves -1 where nothing is left to draw and counts it in `dropped`; "raise" raises NaysayError.

    Examples:
        >>> import naysay as ns
        >>> cache = Cache(2, 3, ns.Positives.from_pairs([0, 1], [5, 5], n_items=9))
        >>> cache.put([0], [[4, 5, 4]])
        2
        >>> cache.get([0, 1]).tolist()
        [[4, -1, -1], [-1, -1, -1]]
    """

    needs_main_process = True  # its draws depend on what it was taught in the training loop

    def __init__(
        self,
        n_anchors: int,
        size: int,
        positives: Positives | None = None,
        *,
        distinct: bool = True,
        on_short: str = "pad",
    ) -> None:
        """Make an empty table of (n_anchors, size)."""
        self.n_anchors = _slots.check_count("n_anchors", n_anchors, 0)
        self.size = _slots.check_count("size", size)
        _slots.check_known(positives)
        if positives is not None and positives.n_anchors != self.n_anchors:
            raise_invalid("n_anchors", f"{positives.n_anchors}, like positives", self.n_anchors)
        self.positives = positives
        self.distinct, self.on_short = _slots.check_settings(distinct, on_short)
        self._n_items = None if positives is None else positives.n_items
        self._lock = Lock()
        self._table = np.full((self.n_anchors, self.size), -1, np.int64)

    def put(self, anchors: ArrayLike, ids: ArrayLike) -> int:
        """Replace the candidates of some anchors.

        Args:
            anchors: (B,) ids. If an anchor comes twice, the last row stays.
            ids: (B, m) candidates, m <= size; -1 is an empty place.

        Returns:
            How many ids were dropped, because they are known of the anchor or repeat an earlier one of the row.

        Raises:
            NaysayError: If a shape or an id is invalid.
        """
        rows = self._anchors(anchors)
        given = whole_numbers("ids", to_numpy(ids), "(B, m)").astype(np.int64, copy=False)
        check_lengths(anchors=len(rows), ids=len(given))
        if given.shape[1] > self.size:
            advice = f"Make a Cache of size {given.shape[1]}, or choose among them first."
            raise_invalid("ids", f"of at most {self.size} columns, the size", given.shape[1], advice)
        check_ids("ids", given, self._n_items, "items", least=-1)
        return self._write(rows, given)

    def get(self, anchors: ArrayLike) -> NDArray[np.int64]:
        """(B, size) the candidates of the anchors (B,), filled from the left, then -1."""
        rows = self._anchors(anchors)
        with self._lock:
            return self._table[rows]

    def draw(self, query: Query, n: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, n) of the candidates of the query's anchors; n is a number, or (B,) numbers."""
        anchors, counts, width, key = _slots.asked(query, n, rng, self.n_anchors)
        with self._lock:
            table = self._table[anchors]  # a copy: what is put from here on does not change the draw
        ids, log_q = _slots.draw_filled(table, counts, width, key, distinct=self.distinct)
        return Negatives(ids, log_q=log_q, dropped=_slots.shortfall(self.on_short, ids, counts))

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """The table, (n_anchors, size)."""
        with self._lock:
            return {"table": self._table.copy()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned, of the same shape, without what has become known since then."""
        check_kind("state", state, Mapping, "what Cache.state returned")
        if "table" not in state:
            raise_invalid("state", "what Cache.state returned", f"no 'table' in {shown(list(state))}")
        table = whole_numbers("table", to_numpy(state["table"]), "(n_anchors, size)")
        if table.shape != self._table.shape:
            raise_invalid("state", f"of a table of shape {self._table.shape}", table.shape)
        check_ids("table", table, self._n_items, "items", least=-1)
        self._write(np.arange(self.n_anchors), table.astype(np.int64, copy=False))

    def _write(self, anchors: NDArray[np.int64], given: NDArray[np.int64]) -> int:
        """Store checked ids without known and repeated ones; return how many those were."""
        known = np.zeros(given.shape, np.bool_)
        if self.positives is not None:
            known = self.positives.contains(anchors, given, relation="any")
        tidy = np.empty((len(given), self.size), np.int64)
        dropped = np.empty(len(given), np.int64)
        given = frozen(np.ascontiguousarray(given))
        in_rows(keep_first, len(given), 2 * given.size, given, known, tidy, dropped)
        self._store(anchors, tidy)
        return int(dropped.sum())

    def _store(self, anchors: NDArray[np.int64], tidy: NDArray[np.int64]) -> None:
        """Store (B, size) ids that are not known and not repeated, filled from the left."""
        with self._lock:
            self._table[anchors] = tidy

    def _anchors(self, anchors: ArrayLike) -> NDArray[np.int64]:
        rows = whole_numbers("anchors", to_numpy(anchors)).astype(np.int64, copy=False)
        check_range("anchors", rows, self.n_anchors, "anchors")
        return rows

    def __repr__(self) -> str:
        return _slots.shown_settings(self, f"{self.n_anchors:,} x {self.size:,}", self.positives)
