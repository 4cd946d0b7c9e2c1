"""Duplicates: candidates that are the positive or the anchor under another id."""

from __future__ import annotations

from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import frozen, offsets
from naysay._slots import check_ids
from naysay.arrays import Floats, to_numpy
from naysay.checks import check_all, check_bool, check_kind, check_number, check_whole, public, raise_invalid
from naysay.detectors._suspicion import (
    as_scores,
    as_suspicion,
    by_probability,
    check_query_and_negatives,
    like,
    query_anchors,
)
from naysay.detectors._text_hash import folded_blocks, keys_of, read_texts, signatures
from naysay.kernels import duplicates as kernels
from naysay.kernels.threads import in_rows
from naysay.positives import POSITIVE, Positives
from naysay.text import described
from naysay.types import Array, Negatives, Query, positive_ids

REASONS = ("none", "positive", "anchor", "same text", "near text", "near vector", "transitive")
Ids = NDArray[np.int64]


@final
@public
class Duplicates:
    """Exact and near duplicates of a row's positives and anchor, and positives of related anchors.

    Pass any of texts, vectors and positives. Suspicion is the largest of

        1         the id is a positive or the anchor; or the folded text is equal: Unicode NFKC, case, whitespace,
                  invisible marks and punctuation ("Paris." is "paris"), except punctuation that changes a number
                  (-5 or .5 is not 5) or a name (# % & * / @ and backslash: C# is not C)
        s(v, t)   logit s = 2 (logit v - logit t), v the estimated Jaccard similarity of word n-grams, or the cosine,
                  to the nearest positive or the anchor, t its threshold: 0.5 at v = t, 1 at v = 1, 0 at v <= 0
        transitive   for a positive of another anchor that shares a positive

    A text without visible characters has no duplicates. Texts are not kept, only 8 + 4 * signature bytes each.

    Args:
        item_texts: Texts of the items, by id: strings or bytes.
        anchor_texts: Texts of the anchors, by id.
        item_vectors: (n_items, d) vectors of any encoder.
        anchor_vectors: (n_anchors, d) in the same space.
        positives: The known positives of each anchor. None: only the positive of the query.
        shared_ids: Whether anchors and items are one set, as in a graph or in pairs of sentences. The anchor is then
            a candidate of itself, and has the item's text and vector.
        jaccard: The threshold for near texts, in (0, 1). None: equal texts only.
        cosine: The threshold for near vectors, in (0, 1).
        transitive: The suspicion, in [0, 1], of a positive of another anchor that shares a positive (q - p - q' -
            item). None: not used.
        punctuation: Whether to fold punctuation; use False for code.
        shingle: Words per n-gram, for near texts.
        signature: The number of MinHash functions.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> duplicates = Duplicates(item_texts=["Paris.", "paris", "Rome"], anchor_texts=["capital of France?"])
        >>> query = ns.Query([0], positives=[0])
        >>> duplicates.suspicion(query, ns.Negatives(np.array([[1, 2, -1]])))
        array([[1., 0., 0.]])
    """

    reason_names = REASONS

    def __init__(
        self,
        *,
        item_texts: Any = None,
        anchor_texts: Any = None,
        item_vectors: Any = None,
        anchor_vectors: Any = None,
        positives: Positives | None = None,
        shared_ids: bool = False,
        jaccard: float | None = 0.8,
        cosine: float = 0.98,
        transitive: float | None = None,
        punctuation: bool = True,
        shingle: int = 3,
        signature: int = 128,
    ) -> None:
        self.shared_ids = check_bool("shared_ids", shared_ids)
        self.punctuation = check_bool("punctuation", punctuation)
        self.jaccard = None if jaccard is None else check_number("jaccard", jaccard, above=0, below=1)
        self.cosine = check_number("cosine", cosine, above=0, below=1)
        self.transitive = None
        if transitive is not None:
            self.transitive = check_number("transitive", transitive, at_least=0, at_most=1)
        self.shingle, self.signature = check_whole("shingle", shingle, 1), check_whole("signature", signature, 1)
        if positives is not None:
            check_kind("positives", positives, Positives, "Positives")
        elif transitive is not None:
            raise_invalid("positives", "given with `transitive`", None)
        elif item_texts is None and item_vectors is None and not shared_ids:
            advice = "Or pass `item_vectors`, `positives`, or `shared_ids`."
            raise_invalid("item_texts", "given, or something else to compare by", None, advice)
        for name, of_anchors, of_items in (
            ("texts", anchor_texts, item_texts),
            ("vectors", anchor_vectors, item_vectors),
        ):
            if of_anchors is not None and (of_items is None or shared_ids):
                rule = f"given with `item_{name}`, and without `shared_ids`"
                raise_invalid(f"anchor_{name}", rule, "shared_ids=True" if shared_ids else f"no item_{name}")
        self._texts = None if item_texts is None else self._text_table(item_texts, anchor_texts)
        self._vectors = None if item_vectors is None else _vector_table(item_vectors, anchor_vectors)
        self.n_items, self.n_anchors = self._sizes(positives)
        self._known = None
        if positives is not None:
            self._known = _KnownRows(positives, self.n_anchors or 0, both_ways=transitive is not None)
            self.n_anchors = self._known.n_anchors

    def _text_table(self, item_texts: Any, anchor_texts: Any) -> _Table:
        """Keys of the folded texts, and signatures unless only equal texts count."""
        items = read_texts("item_texts", item_texts)
        anchors = [] if anchor_texts is None else read_texts("anchor_texts", anchor_texts)
        size = 0 if self.jaccard is None else self.signature
        keys, signed = [np.empty(0, np.uint64)], [np.empty((0, size), np.uint32)]
        for block in folded_blocks([*items, *anchors], punctuation=self.punctuation):
            keys.append(keys_of(block))
            if size:
                signed.append(signatures(block, self.shingle, size))
        return _Table(
            len(items), len(anchors), frozen(np.concatenate(keys)), frozen(np.concatenate(signed)) if size else None
        )

    def _sizes(self, positives: Positives | None) -> tuple[int | None, int | None]:
        """The number of items and of anchors, None if unknown. Raises if parts are of different sizes."""
        sizes: dict[str, int | None] = {}
        for what in ("item", "anchor"):
            given = {getattr(table, f"n_{what}s") for table in (self._texts, self._vectors) if table} - {0}
            if len(given) > 1:
                raise_invalid(f"{what}_texts", f"as many as `{what}_vectors`", "{} and {}".format(*sorted(given)))
            sizes[what] = given.pop() if given else None
        if self.shared_ids:
            sizes["anchor"] = sizes["item"]
        for what, size in sizes.items() if positives is not None else ():
            known = getattr(positives, f"n_{what}s")
            if size is not None and known > size:
                raise_invalid("positives", f"of at most {size} {what}s, like the texts or vectors", known)
        return sizes["item"], sizes["anchor"]

    def suspicion(self, query: Query, negatives: Negatives) -> Array:
        """Return (B, K) in [0, 1]."""
        return as_suspicion(self._judge(query, negatives)[0], negatives)

    def reasons(self, query: Query, negatives: Negatives) -> Array:
        """Return (B, K) int8: the index in `reason_names` of each slot's suspicion, 0 without suspicion.

        Ties go to the first name.
        """
        return like(self._judge(query, negatives)[1], negatives.ids)

    def _judge(self, query: Query, negatives: Negatives) -> tuple[Floats, NDArray[np.int8]]:
        """Suspicion and reason of each slot."""
        check_query_and_negatives(query, negatives)
        anchors = query_anchors(query)
        check_ids("query.anchors", anchors, self.n_anchors, "anchors")
        ids = np.ascontiguousarray(to_numpy(negatives.ids))
        check_ids("negatives.ids", ids, self.n_items, "items", least=-1)
        positives, tables = None if query.positives is None else positive_ids(query), (self._texts, self._vectors)
        if positives is not None:
            check_ids("query.positives", positives, self.n_items, "items")
        elif self._known is None and not self.shared_ids and not any(table and table.n_anchors for table in tables):
            positive_ids(query)  # raises: there is nothing to compare with
        best, reason = np.zeros(ids.shape), np.zeros(ids.shape, np.int8)
        for name, values in self._parts(frozen(anchors), frozen(ids), positives):
            better = (values > best) & (ids >= 0)
            best, reason = np.where(better, values, best), np.where(better, np.int8(REASONS.index(name)), reason)
        return best, reason

    def _parts(self, anchors: Ids, ids: Ids, positives: Ids | None) -> list[tuple[str, Floats]]:
        """The suspicion by each part, in the order of `reason_names`."""
        indptr, others = _references(self._known, anchors, positives)
        rows, pairs = len(ids), (len(ids) + len(others)) * ids.shape[1]
        keys = frozen(np.empty(0, np.uint64)) if self._texts is None else self._texts.values
        same = np.empty(ids.shape, np.int8)
        in_rows(kernels.same, rows, 2 * pairs, ids, indptr, others, keys, same)
        parts = [("positive", 1.0 * (same == kernels.ITSELF)), ("same text", 1.0 * (same == kernels.SAME_KEY))]
        its_own = (ids == anchors[:, None]) & self.shared_ids
        if self._texts is not None:
            own = frozen(self._own(self._texts, anchors))
            key = np.where(own >= 0, keys[own], 0)[:, None]
            its_own |= (keys[ids] == key) & (key != 0)
            if self._texts.signed is not None and self.jaccard is not None:
                largest, signed = np.empty(ids.shape), self._texts.signed
                steps = pairs * signed.shape[1] // 4
                in_rows(kernels.largest_jaccard, rows, steps, ids, own, indptr, others, keys, signed, largest)
                parts.append(("near text", by_probability(largest, self.jaccard, 2)))
        parts.insert(1, ("anchor", 1.0 * its_own))
        if self._vectors is not None:
            own, vectors = frozen(self._own(self._vectors, anchors)), self._vectors.values
            largest, steps = np.empty(ids.shape), pairs * vectors.shape[1]
            in_rows(kernels.largest_product, rows, steps, ids, own, indptr, others, vectors, largest)
            parts.append(("near vector", by_probability(largest, self.cosine, 2)))
        if self.transitive is not None and self._known is not None:
            known, related = self._known, np.empty(ids.shape, np.bool_)
            arrays = (known.indptr, known.indices, known.filter, known.item_indptr, known.item_anchors)
            in_rows(kernels.transitive, rows, 16 * ids.size, anchors, ids, *arrays, related)
            parts.append(("transitive", self.transitive * related))
        return parts

    def _own(self, table: _Table, anchors: Ids) -> Ids:
        """(B,) the row of each anchor in a table, -1 without one."""
        if self.shared_ids:
            return anchors
        return anchors + table.n_items if table.n_anchors else np.full(len(anchors), -1)

    def describe(self) -> str:
        """What is suspected, in a sentence."""
        ways = ["the same text"] if self._texts is not None else []
        if self._texts is not None and self.jaccard is not None:
            ways.append(f"n-grams with a Jaccard similarity from {self.jaccard} on")
        if self._vectors is not None:
            ways.append(f"vectors with a cosine from {self.cosine} on")
        return f"Suspected as duplicates of the anchor or of its positives: {', '.join(ways) or 'the same item'}."

    def __repr__(self) -> str:
        sizes: dict[str, Any] = {}
        for name, table in (("texts", self._texts), ("vectors", self._vectors)):
            sizes[f"item_{name}"] = None if table is None else table.n_items
            sizes[f"anchor_{name}"] = None if table is None else table.n_anchors or None
        return described(self, **sizes, positives=self._known)


class _Table(NamedTuple):
    """A row for each item, followed by one for each anchor."""

    n_items: int
    n_anchors: int  # rows for anchors
    values: NDArray[Any]  # vectors (n, d) float32, or keys (n,) uint64
    signed: NDArray[np.uint32] | None = None  # (n, P) the signatures of texts


def _vector_table(items: Any, anchors: Any) -> _Table:
    """Vectors of norm 1, float32."""
    units = _unit("item_vectors", items)
    others = units[:0] if anchors is None else _unit("anchor_vectors", anchors)
    if units.shape[1] != others.shape[1]:
        raise_invalid("anchor_vectors", f"of dimension {units.shape[1]}, like `item_vectors`", others.shape[1])
    return _Table(len(units), len(others), frozen(np.concatenate([units, others])))


def _unit(parameter: str, values: Any) -> NDArray[np.float32]:
    """Vectors of norm 1. Raises for zero vectors."""
    vectors = as_scores(parameter, values)
    if vectors.ndim != 2 or not len(vectors):
        raise_invalid(parameter, "numbers of shape (n, d), n at least 1", f"shape {vectors.shape}")
    largest = np.abs(vectors).max(axis=1, initial=0.0, keepdims=True)
    check_all(parameter, largest[:, 0], largest[:, 0] > 0, "vectors other than 0")
    vectors /= largest  # so that no square overflows, or vanishes
    units: NDArray[np.float32] = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return units


class _KnownRows:
    """The positives of each anchor, and `both_ways` the anchors of each item, without pairs to ignore.

    There are at least `n_anchors` rows; an anchor without positives has an empty one.
    """

    def __init__(self, positives: Positives, n_anchors: int, *, both_ways: bool) -> None:
        anchors, items = positives.pairs()
        if positives.relation is not None:
            kept = positives.relation == POSITIVE
            anchors, items = anchors[kept], items[kept]
        self.n_anchors = max(positives.n_anchors, n_anchors)
        known = Positives.from_pairs(anchors, items, self.n_anchors, positives.n_items)
        self.indptr, self.indices, self.filter = known.indptr, known.indices, known.filter
        self.item_indptr: Ids = np.zeros(1, np.int64)
        self.item_anchors: NDArray[Any] = np.empty(0, np.int32)
        if both_ways:
            inverted = Positives.from_pairs(items, anchors, positives.n_items, self.n_anchors)
            self.item_indptr, self.item_anchors = inverted.indptr, inverted.indices

    def __repr__(self) -> str:
        return f"{len(self.indices)} pairs"


def _references(known: _KnownRows | None, anchors: Ids, positives: Ids | None) -> tuple[Ids, Ids]:
    """The references of each row, as CSR: the known positives of its anchor, and the query's positive."""
    none = np.zeros(len(anchors), np.int64)
    starts, stops = (none, none) if known is None else (known.indptr[anchors], known.indptr[anchors + 1])
    counts = stops - starts
    indptr = offsets(counts + (positives is not None))
    rows = np.repeat(np.arange(len(anchors)), np.diff(indptr))
    place = np.arange(len(rows)) - indptr[rows]
    items = np.empty(len(rows), np.int64) if positives is None else positives[rows]
    if known is not None:
        inside = place < counts[rows]
        items[inside] = known.indices[(starts[rows] + place)[inside]]
    return frozen(indptr), frozen(items)
