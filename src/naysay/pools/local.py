"""Local: a list of candidates per anchor, given by the user. The review's local pool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import Rows, from_csr, frozen, offsets, refrozen
from naysay.arrays import to_numpy
from naysay.checks import as_array, at_row, public, raise_invalid, whole_numbers
from naysay.pools._slots import asked, check_known, check_settings, draw_listed, shortfall, shown_settings
from naysay.pools.khop import positive_rows
from naysay.positives import Positives
from naysay.types import Negatives, Query

_KINDS = "a list of id arrays, an (n_anchors, m) array or a Positives"


@final
@public
class Local:
    """Draw from the anchor's own list: its search results, its category, or what it was shown and did not click.

    Draws are uniform over the m candidates of the anchor's list that are not known. log_q, exact:
        independent   -log m
        distinct      -log(m - slot)

    Cost: O(1) per draw, whatever the length; memory 4 bytes per candidate (8 from 2^31 items on) and 8 per anchor. For
    many long lists use a Positives, which needs no Python object per anchor.

    Args:
        lists: One list of ids per anchor, of any length; duplicates are merged. A list of integer arrays; an
            (n_anchors, m) integer array, -1 where it is empty; or a Positives, its positive pairs without the ignored
            ones, as from `Positives.from_csr` or `Positives.from_scipy`.
        positives: The pairs to exclude, exactly: positives and ignored pairs are taken out of the lists at once.
        distinct: Whether a row has an id at most once (default), or draws are independent.
        on_short: "pad" leaves -1 where nothing is left to draw and counts it in `dropped`; "raise" raises NaysayError.

    Examples:
        >>> import naysay as ns
        >>> known = ns.Positives.from_pairs([0, 1], [3, 2], n_items=6)
        >>> pool = Local([[3, 4, 5], [2]], known)
        >>> pool.sizes.tolist()
        [2, 0]
        >>> sorted(pool.draw(ns.Query([0]), 2, rng=ns.rng_for(0)).ids[0].tolist())
        [4, 5]
    """

    def __init__(
        self, lists: Any, positives: Positives | None = None, *, distinct: bool = True, on_short: str = "pad"
    ) -> None:
        """Sort the lists, merge duplicates and take out what is known: O(candidates)."""
        check_known(positives)
        rows = _rows_of(lists)
        if positives is not None and len(rows.indptr) - 1 != positives.n_anchors:
            advice = "Give one list per anchor, empty where there is none."
            raise_invalid("lists", f"{positives.n_anchors} lists, like positives", len(rows.indptr) - 1, advice)
        _check_ids(rows, None if positives is None else positives.n_items)
        if not isinstance(lists, Positives):  # whose rows are in order
            highest = int(rows.indices.max(initial=-1))
            rows = from_csr(rows.indptr, rows.indices, highest + 1)
        if positives is not None:
            rows = _without_known(rows, positives)
        self.indptr, self.indices = frozen(rows.indptr), frozen(rows.indices)
        self.n_anchors = len(self.indptr) - 1
        self.distinct, self.on_short = check_settings(distinct, on_short)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """(n_anchors,) the number of candidates of each anchor."""
        return np.diff(self.indptr)

    def draw(self, query: Query, n: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, n) candidates of the query's anchors; n is a number, or (B,) numbers."""
        anchors, counts, width, key = asked(query, n, rng, self.n_anchors)
        begins = self.indptr[anchors]
        lists = (begins, self.indptr[anchors + 1] - begins, self.indices)
        ids, log_q = draw_listed(lists, counts, width, key, distinct=self.distinct)
        return Negatives(ids, log_q=log_q, dropped=shortfall(self.on_short, ids, counts))

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(refrozen(state))

    def __repr__(self) -> str:
        return shown_settings(self, f"{len(self.indices):,} candidates of {self.n_anchors:,} anchors")


def _rows_of(lists: Any) -> Rows:
    """The lists in CSR form, in their own order and with their duplicates."""
    lists = to_numpy(lists)
    if isinstance(lists, Positives):
        return positive_rows(lists)
    if isinstance(lists, np.ndarray) and lists.dtype != object:
        table = whole_numbers("lists", lists, "(n_anchors, m)")
        filled = table != -1
        return Rows(offsets(np.count_nonzero(filled, axis=1)), table[filled])
    if isinstance(lists, str | bytes | tuple) or not isinstance(lists, Sequence | np.ndarray):
        advice = (
            "For offsets and ids pass Positives.from_csr(indptr, indices), for a sparse matrix Positives.from_scipy."
        )
        raise_invalid("lists", _KINDS, type(lists).__name__, advice)
    arrays = [as_array("lists", to_numpy(one)) for one in lists]
    bad = [row for row, one in enumerate(arrays) if one.ndim != 1 or (one.size and one.dtype.kind not in "iu")]
    if bad:
        first = arrays[bad[0]]
        got = at_row(f"shape {first.shape} of {first.dtype}", bad[0], len(bad))
        raise_invalid("lists", "whole numbers of shape (m,) for each anchor", got)
    # An empty Python list is an array of floats, and would make floats of all the others.
    whole = [one.astype(np.int64, copy=False) for one in arrays]
    lengths = np.fromiter(map(len, whole), np.int64, len(whole))
    return Rows(offsets(lengths), np.concatenate([*whole, np.empty(0, np.int64)]))


def _check_ids(rows: Rows, n_items: int | None) -> None:
    """Raise if ids are out of range, with the first bad list and how many there are."""
    ids = rows.indices
    if ids.size == 0 or (ids.min() >= 0 and (n_items is None or ids.max() < n_items)):
        return
    bad = np.flatnonzero((ids < 0) | (False if n_items is None else ids >= n_items))
    lists = np.unique(np.searchsorted(rows.indptr, bad, side="right") - 1)
    rule = "ids of at least 0" if n_items is None else f"ids between 0 and {n_items - 1} ({n_items} items)"
    raise_invalid("lists", rule, at_row(ids[bad[0]], lists[0], len(lists)))


def _without_known(rows: Rows, positives: Positives) -> Rows:
    """The rows without the pairs that are positive or ignored."""
    anchors = np.repeat(np.arange(positives.n_anchors), np.diff(rows.indptr))
    left = ~positives.contains(anchors, rows.indices, relation="any")
    return Rows(offsets(left)[rows.indptr], rows.indices[left])
