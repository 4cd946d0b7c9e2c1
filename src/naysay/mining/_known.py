"""What can never be a negative: known pairs, the anchor itself, and documents that hold the anchor's own text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, at_row, check_range, raise_invalid, shown, whole_numbers
from naysay.detectors._text_hash import keys_of
from naysay.positives import Positives
from naysay.rng import rng_for
from naysay.search._scores import taken
from naysay.search.vectors import Vectors, floats

Ids = NDArray[np.int64]
Pairs = tuple[Ids, Ids]  # anchors and items
Matched = Callable[[NDArray[np.uint32], np.dtype[Any]], Pairs]
_COPIES = 100  # documents with one and the same text that are left out by it
_NUMBERS = 1 << 21  # numbers of vectors that are compared at a time


def read_known(parameter: str, given: Any, n_anchors: int, n_items: int) -> Positives:
    """Known pairs as `Positives` of n_anchors x n_items.

    Given as Positives; (anchors, items), two arrays of one length; (n_anchors,) the one item of each anchor, -1 none;
    or None.
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


def known_of(positives: Any, ignore: Any, own: Positives | None, n_anchors: int, n_items: int) -> Positives:
    """All that can never be a negative: positives, what to ignore, and each anchor itself as `own` has it.

    A pair that is a positive and ignored is a positive. Pairs of `ignore` are ignored whatever their relation there.
    """
    known = read_known("positives", positives, n_anchors, n_items)
    if ignore is not None:
        known = known.with_ignored(*read_known("ignore", ignore, n_anchors, n_items).pairs())
    return known if own is None else known.with_ignored(*own.pairs())


def read_own(given: Any, n_anchors: int, n_items: int) -> Positives | None:
    """`same_ids` as the pairs (query, corpus row) that are one and the same; None if there are none.

    Given as True: query i is corpus row i; (n_anchors,) corpus rows, -1 none; or (query ids, corpus ids).
    """
    if isinstance(given, bool | np.bool_) or given is None:
        if not given:
            return None
        if n_anchors != n_items:
            advice = "Pass the corpus row of each query, -1 for none, or (query ids, corpus ids)."
            rule = f"left out unless queries are the {n_items} corpus rows"
            raise_invalid("same_ids", rule, f"{n_anchors} queries", advice)
        rows = np.arange(n_anchors)
    elif isinstance(given, tuple | list) and len(given) == 2 and all(np.ndim(to_numpy(part)) == 1 for part in given):
        rows = _rows_of_ids(_as_list(given[0]), _as_list(given[1]), n_anchors, n_items)
    else:
        rows = as_array("same_ids", to_numpy(given))
        if rows.shape != (n_anchors,) or (rows.size and rows.dtype.kind not in "iu"):
            rule = f"True, ({n_anchors},) the corpus row of each query, or (query ids, corpus ids)"
            raise_invalid("same_ids", rule, f"shape {rows.shape} {rows.dtype}" if rows.ndim else shown(given))
        rows = rows.astype(np.int64)
        check_range("same_ids", rows, n_items, "corpus rows", least=-1)
    anchors = np.flatnonzero(rows >= 0)
    return Positives.from_pairs(anchors, rows[anchors], n_anchors, n_items)


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
    from naysay.formats._labels import check_distinct  # here, because few calls need them

    check_distinct("same_ids", corpus)
    places = {name: row for row, name in enumerate(corpus)}
    return np.array([places.get(name, -1) for name in queries], np.int64)


def own_note(anchors: Ids, option: str = "keep_own_text=True", by: str = "vector") -> tuple[str, ...]:
    """A sentence on the anchors, with repeats, whose own text is in the corpus; none if there are none."""
    if not len(anchors):
        return ()
    return (f"{len(np.unique(anchors)):,} anchors have their own {by} in the corpus under another id. These documents "
            f"are left out ({option} keeps them).",)  # fmt: skip


def text_keys(texts: Sequence[str]) -> NDArray[np.uint64]:
    """(n,) equal keys for texts that are equal but for whitespace; 0 for an empty one, which equals nothing."""
    return keys_of([" ".join(text.split()).encode("utf-8", "surrogatepass") for text in texts])


def equal_pairs(keys: NDArray[Any], blocks: Iterable[NDArray[Any]]) -> Pairs:
    """(anchors, items) of equal keys, of the first 100 items with each key; a key of 0 equals nothing.

    `keys` are those of the anchors, `blocks` those of the items, some at a time. A sort of the anchors' keys.
    """
    distinct, which = np.unique(keys, return_inverse=True)
    found, seen, start = [np.empty((2, 0), np.int64)], np.zeros(len(distinct), np.int64), 0
    for block in blocks:
        place = np.minimum(np.searchsorted(distinct, block), len(distinct) - 1) if len(distinct) else block[:0]
        hits = np.flatnonzero((distinct[place] == block) & (block != 0)) if len(distinct) else np.empty(0, np.int64)
        order = hits[np.argsort(place[hits], kind="stable")]
        groups, firsts, counts = np.unique(place[order], return_index=True, return_counts=True)
        nth = np.arange(len(order)) - np.repeat(firsts, counts) + np.repeat(seen[groups], counts)
        kept = order[nth < _COPIES]
        found.append(np.stack([place[kept].astype(np.int64), start + kept]))
        seen[groups] += counts
        start += len(block)
    group, items = np.concatenate(found, axis=1)
    order = np.argsort(which, kind="stable")
    starts = np.searchsorted(which[order], np.arange(len(distinct) + 1))
    counts = np.diff(starts)[group]
    anchors = order[np.repeat(starts[group] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())]
    return anchors.astype(np.int64), np.repeat(items, counts)


def equal_vectors(queries: Vectors, corpus: Vectors, matched: Matched | None = None) -> Pairs:
    """(anchors, items) with the same vector, number for number; of the first 100 such items of each anchor.

    An encoder gives equal inputs equal vectors. One pass over both, by 32-bit keys, then a comparison of what is left.
    `matched` is `matched_keys` of the corpus, where others have done it.
    """
    kind = np.result_type(*(floats(np.empty(0, side.dtype)).dtype for side in (queries, corpus)))
    keys = np.concatenate([np.empty(0, np.uint32), *_vector_keys(queries, kind)])
    anchors, items = matched_keys(keys, kind, corpus) if matched is None else matched(keys, kind)
    same, step = np.zeros(len(items), np.bool_), max(1, _NUMBERS // corpus.width)
    for start in range(0, len(items), step):
        part = slice(start, start + step)
        same[part] = (taken(queries, anchors[part]) == taken(corpus, items[part])).all(axis=1)
    return anchors[same], items[same]


def matched_keys(keys: NDArray[np.uint32], kind: np.dtype[Any], corpus: Vectors) -> Pairs:
    """(anchors, items) whose vectors have equal keys; of the first 100 such items of each anchor."""
    return equal_pairs(keys, _vector_keys(corpus, kind))


def first_copies(anchors: Ids, items: Ids) -> Pairs:
    """Of pairs that were matched in parts of a corpus, those of the first 100 items of each anchor."""
    order = np.lexsort((items, anchors))
    anchors, items = anchors[order], items[order]
    nth = np.arange(len(anchors)) - np.searchsorted(anchors, anchors)
    return anchors[nth < _COPIES], items[nth < _COPIES]


def _vector_keys(vectors: Vectors, kind: np.dtype[Any]) -> Iterator[NDArray[np.uint32]]:
    """Keys of rows, some at a time: a sum over the bits of their numbers, with random factors."""
    factors = rng_for(0).integers(0, 1 << 32, 2 * vectors.width, np.uint32) | np.uint32(1)
    for start in range(0, vectors.n, step := max(1, _NUMBERS // max(1, vectors.width))):
        rows = floats(np.asarray(vectors.rows(start, min(start + step, vectors.n)))).astype(kind, copy=False)
        bits = np.ascontiguousarray(rows + kind.type(0)).view(np.uint32)  # -0.0 becomes 0.0
        yield np.maximum(bits @ factors[: bits.shape[1]], np.uint32(1))
