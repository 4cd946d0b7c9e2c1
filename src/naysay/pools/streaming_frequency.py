"""StreamingFrequency: how often each item comes, estimated from the stream of batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from naysay._lock import Lock
from naysay.arrays import for_checkpoints, to_numpy
from naysay.checks import (
    as_array,
    as_floats,
    check_all,
    check_kind,
    check_number,
    check_range,
    first_bad,
    public,
    raise_invalid,
    shown,
    whole_numbers,
)
from naysay.pools._slots import check_count
from naysay.text import described
from naysay.types import Query, check_query, positive_ids


@final
@public
class StreamingFrequency:
    """Estimate the probability that an item is in a batch, without counting over the whole data first.

    For each cell of a table, `last` is the step at which an item of that cell came last, and `gap` a moving average of
    the steps between two of them: gap <- (1 - rate) gap + rate (step - last). An item that comes every 4 steps has gap
    4 and probability 1/4. With several `hashes` an item has a cell in each table, and the largest gap counts, because
    items that share a cell make it smaller.

    Use it for in-batch negatives of frequent items: in_batch(..., log_q=frequency.log_q(items), positive_log_q=the
    same, form="classic") is the paper's; form="refined" corrects the negatives alone. These are estimates of the
    probability to be in a batch, so they are not `Negatives.log_q`, which is exact.

    Yi et al. Sampling-Bias-Corrected Neural Modeling for Large Corpus Item Recommendations. RecSys 2019. An item that
    comes twice in a batch counts once: its gap would be 0.

    Cost: 16 bytes per cell; O(B) per step.

    Args:
        size: The number of cells of a table. With one hash: the number of items, each has its own.
        rate: Of the moving average, above 0 and at most 1.
        hashes: The number of tables.
        initial: The gap before an item was seen: about n_items / batch size.
        unseen: The gap reported for an item that was never seen; None: raise.

    Examples:
        >>> import naysay as ns
        >>> frequency = StreamingFrequency(10, rate=0.1, initial=4.0)
        >>> for step in range(40):
        ...     frequency.observe(ns.Query([0, 1], positives=[7, step % 4], step=step))
        >>> frequency.log_q([7, 2]).round(2).tolist()                # every step, and every fourth
        [-0.05, -1.39]
    """

    def __init__(
        self, size: int, *, rate: float = 0.01, hashes: int = 1, initial: float = 1.0, unseen: float | None = None
    ) -> None:
        """Start with nothing seen."""
        self.size, self.hashes = check_count("size", size), check_count("hashes", hashes)
        self.rate = check_number("rate", rate, above=0, at_most=1)
        self.initial = check_number("initial", initial, at_least=1, finite=True)
        self.unseen = None if unseen is None else check_number("unseen", unseen, at_least=1, finite=True)
        self._lock = Lock()
        self._gap = np.full((self.hashes, self.size), float(initial))
        self._last = np.full((self.hashes, self.size), -1, np.int64)

    def observe(self, query: Query, negatives: Any = None, *, positive_scores: Any = None, vectors: Any = None) -> None:
        """Count the positives of a batch. Call it once a step, with `query.step`.

        Args:
            query: A query with positives; its step is later than those before.
            negatives: Not used.
            positive_scores: Not used.
            vectors: Not used.
        """
        check_query(query)
        cells = self._cells(np.unique(positive_ids(query)))
        with self._lock:
            if self._last.max(initial=-1) >= query.step:
                rule = f"a query of a later step than the last, {self._last.max()}"
                raise_invalid("query", rule, f"step {query.step}", "Pass Query(..., step=step).")
            for gap, last, cell in zip(self._gap, self._last, cells, strict=True):
                came = np.unique(cell)
                old = came[last[came] >= 0]  # the first time there is no gap yet
                gap[old] = (1 - self.rate) * gap[old] + self.rate * (query.step - last[old])
                last[came] = query.step

    def log_q(self, ids: ArrayLike) -> NDArray[np.float64]:
        """Return the log-probabilities of items, of the shape of `ids`: minus the log of the largest gap."""
        given = np.asarray(to_numpy(ids))
        cells = self._cells(whole_numbers("ids", given.ravel()).astype(np.int64))
        with self._lock:
            gaps = np.take_along_axis(self._gap, cells, axis=1).max(axis=0)
            new = np.asarray((np.take_along_axis(self._last, cells, axis=1) < 0).any(axis=0))
        if new.any():
            if self.unseen is None:
                raise_invalid("ids", "items that were seen", first_bad(given.ravel(), new), "Or pass `unseen`.")
            gaps[new] = self.unseen
        return np.asarray(-np.log(gaps).reshape(given.shape))

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """All that the next answer depends on, apart from the settings."""
        with self._lock:
            return {"gap": self._gap.copy(), "last": self._last.copy()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned."""
        check_kind("state", state, Mapping, "what StreamingFrequency.state returned")
        if set(state) != {"gap", "last"}:
            raise_invalid("state", "of ['gap', 'last']", shown(list(state)))
        gap, last = as_floats("gap", to_numpy(state["gap"])), as_array("last", to_numpy(state["last"]))
        for name, array, kinds in (("gap", gap, "f"), ("last", last, "iu")):
            if array.shape != (self.hashes, self.size) or array.dtype.kind not in kinds:
                rule = f"numbers of shape ({self.hashes}, {self.size})"
                raise_invalid(name, rule, f"{array.dtype} of shape {array.shape}")
        check_all("gap", gap, np.isfinite(gap) & (gap >= 1), "finite and at least 1")
        check_all("last", last, (last >= -1) & (last < 1 << 62), "at least -1 and below 2^62")
        with self._lock:
            self._gap, self._last = gap.copy(), last.astype(np.int64)

    def _cells(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """(hashes, n) the cell of each id in each table; the id itself if every item has one."""
        if self.hashes == 1:
            check_range("ids", ids, self.size, "cells")
            return ids[None]
        if ids.size and ids.min() < 0:
            raise_invalid("ids", "at least 0", first_bad(ids, ids < 0))
        mixed = ids[None].astype(np.uint64) + np.arange(1, self.hashes + 1, dtype=np.uint64)[:, None] * _STEP
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # splitmix64
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        return np.asarray((mixed ^ (mixed >> np.uint64(31))) % np.uint64(self.size), np.int64)

    def __repr__(self) -> str:
        """The settings, and how many cells were seen."""
        return described(self, f"{int((self._last >= 0).sum()):,} cells seen")


_STEP = np.uint64(0x9E3779B97F4A7C15)
