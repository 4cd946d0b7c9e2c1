"""Known pairs and k in any of the forms that users have them in, as `Positives` and (n,) numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, check_range, check_whole, first_bad, raise_invalid, shown, whole_numbers
from naysay.positives import IGNORE, POSITIVE, Positives

Ids = NDArray[np.int64]


def read_known(parameter: str, given: Any, n_anchors: int, n_items: int) -> Positives:
    """Known pairs as `Positives` of n_anchors x n_items.

    Args:
        parameter: The name for errors.
        given: Positives; (anchors, items), two arrays of one length; (n_anchors,) the one item of each anchor, -1
            none; or None.
        n_anchors: The number of queries.
        n_items: The number of corpus rows.
    """
    empty = Positives.from_pairs(np.empty(0, np.int64), np.empty(0, np.int64), n_anchors, n_items)
    if given is None:
        return empty
    if isinstance(given, Positives):
        sizes = (("anchors", "queries", given.n_anchors, n_anchors), ("items", "corpus", given.n_items, n_items))
        for what, like, size, limit in sizes:
            if size > limit:
                raise_invalid(parameter, f"of at most {limit} {what}, like {like}", size)
        return given if (given.n_anchors, given.n_items) == (n_anchors, n_items) else given.union(empty)
    if isinstance(given, tuple | list) and len(given) == 2 and all(np.ndim(to_numpy(part)) == 1 for part in given):
        anchors, items = (whole_numbers(parameter, to_numpy(part)) for part in given)
        if len(anchors) != len(items):
            raise_invalid(parameter, "two arrays of one length", f"{len(anchors)} anchors and {len(items)} items")
        check_range(parameter, anchors, n_anchors, "queries")
        check_range(parameter, items, n_items, "corpus rows")
        return Positives.from_pairs(anchors, items, n_anchors, n_items)
    rule = f"a Positives, two arrays (anchors, items), or ({n_anchors},) the one of each query"
    own = as_array(parameter, to_numpy(given))
    if own.shape != (n_anchors,) or (own.size and own.dtype.kind not in "iu"):
        got = f"shape {own.shape} {own.dtype}" if own.ndim else shown(given)
        raise_invalid(parameter, rule, got)
    own = own.astype(np.int64)
    check_range(parameter, own, n_items, "corpus rows", least=-1)
    anchors = np.flatnonzero(own >= 0)
    return Positives.from_pairs(anchors, own[anchors], n_anchors, n_items)


def known_of(positives: Any, ignore: Any, n_anchors: int, n_items: int, *, same_ids: bool = False) -> Positives:
    """All that can never be a negative: positives, what to ignore, and, if ids are shared, each anchor itself.

    A pair that is a positive and ignored is a positive. Pairs of `ignore` are ignored whatever their relation there.
    """
    known = read_known("positives", positives, n_anchors, n_items)
    if ignore is not None:
        known = known.with_ignored(*read_known("ignore", ignore, n_anchors, n_items).pairs())
    if not isinstance(same_ids, bool | np.bool_):
        raise_invalid("same_ids", "True or False", shown(same_ids))
    if same_ids:
        if n_anchors != n_items:
            advice = "Pass some of the pairs by `ignore`."
            raise_invalid(
                "same_ids", f"left out unless queries are the {n_items} corpus rows", f"{n_anchors} queries", advice
            )
        known = known.with_ignored(np.arange(n_anchors), np.arange(n_anchors))
    return known


def pairs_of(known: Positives, relation: int) -> tuple[Ids, Ids]:
    """(anchors, items) of the pairs of one relation, in order."""
    anchors, items = known.pairs()
    if known.relation is None:
        return (anchors, items) if relation == POSITIVE else (anchors[:0], items[:0])
    chosen = known.relation == relation
    return anchors[chosen], items[chosen]


def kinds_of(known: Positives, *, same_ids: bool) -> dict[str, NDArray[np.bool_]]:
    """{reason: (pairs,) which of `known.pairs()` are excluded for it}; each pair has one reason."""
    anchors, items = known.pairs()
    ignored = np.zeros(len(items), np.bool_) if known.relation is None else known.relation == IGNORE
    itself = ignored & (anchors == items) if same_ids else np.zeros(len(items), np.bool_)
    return {"positive": ~ignored, "anchor": itself, "ignored": ignored & ~itself}


def one_each(known: Positives) -> Ids | None:
    """(n,) the first positive of each anchor, or None if an anchor has none."""
    anchors, items = pairs_of(known, POSITIVE)
    owners, first = np.unique(anchors, return_index=True)
    return items[first] if len(owners) == known.n_anchors else None


def rows_of(known: Positives, rows: Ids) -> Positives:
    """All that is known of some anchors, which are numbered from 0, as plain pairs."""
    starts, counts = known.indptr[rows], np.diff(known.indptr)[rows]
    anchors = np.repeat(np.arange(len(rows)), counts)
    places = np.arange(len(anchors)) + np.repeat(starts - np.cumsum(counts) + counts, counts)
    return Positives.from_pairs(anchors, known.indices[places], len(rows), known.n_items)


def read_counts(k: Any, rows: int) -> NDArray[np.int64]:
    """(rows,) from one number for all, or one for each."""
    given = to_numpy(k)
    if np.ndim(given) == 0:
        return np.full(rows, check_whole("k", given.item() if isinstance(given, np.ndarray) else given, 0))
    counts = whole_numbers("k", given).astype(np.int64)
    if len(counts) != rows:
        raise_invalid("k", f"one number, or one for each of the {rows} anchors", f"{len(counts)} numbers")
    if counts.size and counts.min() < 0:
        raise_invalid("k", "at least 0", first_bad(counts, counts < 0))
    return counts
