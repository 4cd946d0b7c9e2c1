"""Known pairs, which are never negatives: as `positives`, `ignore` and `same_ids` of `mine` give them."""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay._rows import offsets
from naysay.arrays import to_numpy
from naysay.checks import as_array, at_row, check_range, raise_invalid, shown, whole_numbers
from naysay.mining.candidates import Ids
from naysay.positives import POSITIVE, Positives


def pairs_of(known: Positives, relation: int) -> tuple[Ids, Ids]:
    """(anchors, items) of the pairs of one relation, in order."""
    anchors, items = known.pairs()
    if known.relation is None:
        return (anchors, items) if relation == POSITIVE else (anchors[:0], items[:0])
    chosen = known.relation == relation
    return anchors[chosen], items[chosen]


def known_places(known: Positives, anchors: Ids) -> Ids:
    """The places in `known.pairs()` of the pairs of some anchors."""
    counts = np.diff(known.indptr)[anchors]
    starts = known.indptr[anchors] - offsets(counts)[:-1]
    return np.repeat(starts, counts) + np.arange(counts.sum())


def known_rows(known: Positives, anchors: Ids) -> Positives:
    """All that is known of some anchors, which are numbered from 0."""
    if len(anchors) == known.n_anchors:
        return known
    places = known_places(known, anchors)
    relation = None if known.relation is None or not len(places) else known.relation[places]
    indptr = offsets(np.diff(known.indptr)[anchors])
    return Positives(indptr, known.indices[places], known.n_items, relation=relation)


def known_pairs(positives: Any, ignore: Any, itself: Positives | None, n_anchors: int, n_items: int) -> Positives:
    """All that can never be a negative: positives, what to ignore, and each anchor itself.

    A pair that is a positive and ignored is a positive. Pairs of `ignore` are ignored whatever their relation there.
    """
    known = read_known("positives", positives, n_anchors, n_items)
    if ignore is not None:
        known = known.with_ignored(*read_known("ignore", ignore, n_anchors, n_items).pairs())
    return known if itself is None else known.with_ignored(*itself.pairs())


def read_known(parameter: str, given: Any, n_anchors: int, n_items: int) -> Positives:
    """Known pairs as `Positives` of n_anchors x n_items.

    Given as Positives; (anchors, items), two arrays of one length; (n_anchors,) the one item of each anchor, -1 none;
    or None.
    """
    if isinstance(given, Positives):
        if (given.n_anchors, given.n_items) == (n_anchors, n_items):
            return given
        sizes = (("anchors", "queries", given.n_anchors, n_anchors), ("items", "corpus", given.n_items, n_items))
        for what, like, size, limit in sizes:
            if size > limit:
                raise_invalid(parameter, f"of at most {limit} {what}, like {like}", size)
        return given.union(_no_pairs(n_anchors, n_items))
    if given is None:
        return _no_pairs(n_anchors, n_items)
    if _are_two_arrays(given):
        anchors, items = (whole_numbers(parameter, to_numpy(part)) for part in given)
        if len(anchors) != len(items):
            raise_invalid(parameter, "two arrays of one length", f"{len(anchors)} anchors and {len(items)} items")
        check_range(parameter, anchors, n_anchors, "queries")
        check_range(parameter, items, n_items, "corpus rows")
        return Positives.from_pairs(anchors, items, n_anchors, n_items)
    rule = f"a Positives, two arrays (anchors, items), or ({n_anchors},) the one of each query"
    return _one_item_each(parameter, rule, given, n_anchors, n_items)


def _no_pairs(n_anchors: int, n_items: int) -> Positives:
    return Positives(np.zeros(n_anchors + 1, np.int64), np.empty(0, np.int32), n_items)


def read_itself(given: Any, n_anchors: int, n_items: int) -> Positives | None:
    """`same_ids` as the pairs (query, corpus row) that are one and the same; None if there are none.

    Given as True: query i is corpus row i; (n_anchors,) corpus rows, -1 none; or (query ids, corpus ids).
    """
    if given is None or given is False:
        return None
    if given is True:
        if n_anchors != n_items:
            advice = "Pass the corpus row of each query, -1 for none, or (query ids, corpus ids)."
            rule = f"left out unless queries are the {n_items} corpus rows"
            raise_invalid("same_ids", rule, f"{n_anchors} queries", advice)
        given = np.arange(n_anchors)
    elif _are_two_arrays(given):
        given = _rows_of_ids(_as_list(given[0]), _as_list(given[1]), n_anchors, n_items)
    rule = f"True, ({n_anchors},) the corpus row of each query, or (query ids, corpus ids)"
    return _one_item_each("same_ids", rule, given, n_anchors, n_items)


def _are_two_arrays(given: Any) -> bool:
    return isinstance(given, tuple | list) and len(given) == 2 and all(np.ndim(to_numpy(part)) == 1 for part in given)


def _one_item_each(parameter: str, rule: str, given: Any, n_anchors: int, n_items: int) -> Positives:
    """Pairs from (n_anchors,) the item of each anchor, -1 for none."""
    items = as_array(parameter, to_numpy(given))
    if items.shape != (n_anchors,) or (items.size and items.dtype.kind not in "iu"):
        raise_invalid(parameter, rule, f"shape {items.shape} {items.dtype}" if items.ndim else shown(given))
    items = items.astype(np.int64)
    check_range(parameter, items, n_items, "corpus rows", least=-1)
    anchors = np.flatnonzero(items >= 0)
    return Positives.from_pairs(anchors, items[anchors], n_anchors, n_items)


def _as_list(part: Any) -> list[Any]:
    names = list(next((getattr(part, way)() for way in ("to_pylist", "tolist") if hasattr(part, way)), part))
    odd = [row for row, name in enumerate(names) if not isinstance(name, str | int)]
    if odd:
        got = at_row(shown(names[odd[0]]), odd[0], len(odd))
        raise_invalid("same_ids", "ids that are strings or whole numbers", got)
    return names


def _rows_of_ids(queries: list[Any], corpus: list[Any], n_anchors: int, n_items: int) -> Ids:
    """(n_anchors,) the corpus row with the id of each query, -1 without one."""
    for what, names, size in (("query", queries, n_anchors), ("corpus", corpus, n_items)):
        if len(names) != size:
            raise_invalid("same_ids", f"{size} {what} ids", len(names))
    row_of = {name: row for row, name in enumerate(corpus)}
    if len(row_of) < len(corpus):
        repeat = next(name for row, name in enumerate(corpus) if row_of[name] != row)
        raise_invalid("same_ids", "different corpus ids", f"{shown(repeat)} twice")
    return np.array([row_of.get(name, -1) for name in queries], np.int64)
