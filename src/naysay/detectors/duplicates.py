"""Duplicates: candidates that are the positive or the anchor under another id."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import frozen
from naysay._slots import check_ids
from naysay.arrays import to_numpy
from naysay.checks import check_bool, check_number, check_whole, public, raise_invalid
from naysay.detectors._duplicate_tables import KnownRows, Table, references, text_table, vector_table
from naysay.detectors._slots import as_suspicion, by_probability, check_query_and_negatives, like, query_anchors
from naysay.detectors._text_hash import read_texts
from naysay.kernels import duplicates as kernels
from naysay.kernels.threads import in_rows
from naysay.positives import Positives
from naysay.text import described
from naysay.types import Array, Negatives, Query, positive_ids

REASONS = ("none", "positive", "anchor", "same text", "near text", "near vector", "transitive")
Floats = NDArray[np.float64]


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

    Cost: construction, a pass over the texts and `signature` hashes for each word. suspicion, for each slot and each
    positive of its row: `signature` comparisons and d products; transitive: the positives of the candidate's anchors.

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
        if positives is not None and not isinstance(positives, Positives):
            raise_invalid("positives", "Positives", type(positives).__name__)
        if item_texts is None and item_vectors is None and positives is None and not shared_ids:
            advice = "Or pass `item_vectors`, `positives`, or `shared_ids`."
            raise_invalid("item_texts", "given, or something else to compare by", None, advice)
        for name, given, items in (("texts", anchor_texts, item_texts), ("vectors", anchor_vectors, item_vectors)):
            if given is not None and (items is None or shared_ids):
                rule = f"given with `item_{name}`, and without `shared_ids`"
                raise_invalid(f"anchor_{name}", rule, "shared_ids=True" if shared_ids else f"no item_{name}")
        self.jaccard = None if jaccard is None else check_number("jaccard", jaccard, above=0, below=1)
        self.cosine = check_number("cosine", cosine, above=0, below=1)
        self.transitive = None
        if transitive is not None:
            self.transitive = check_number("transitive", transitive, at_least=0, at_most=1)
            if positives is None:
                raise_invalid("positives", "given with `transitive`", None)
        self.shingle, self.signature = check_whole("shingle", shingle, 1), check_whole("signature", signature, 1)
        self._vectors = None if item_vectors is None else vector_table(item_vectors, anchor_vectors)
        texts = None if item_texts is None else read_texts("item_texts", item_texts)
        others = [] if anchor_texts is None else read_texts("anchor_texts", anchor_texts)
        of_texts = (0, 0) if texts is None else (len(texts), len(others))
        of_vectors = (0, 0) if self._vectors is None else (self._vectors.n_items, self._vectors.n_anchors)
        self.n_items, self.n_anchors = _sizes(of_texts, of_vectors, positives, shared_ids=self.shared_ids)
        size = None if jaccard is None else signature
        self._texts = None
        if texts is not None:
            self._texts = text_table(texts, others, shingle, size, punctuation=self.punctuation)
        self._known = None
        if positives is not None:
            self._known = KnownRows(positives, self.n_anchors or 0, both_ways=transitive is not None)
            self.n_anchors = self._known.n_anchors

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

    def _parts(
        self, anchors: NDArray[np.int64], ids: NDArray[np.int64], positives: NDArray[np.int64] | None
    ) -> list[tuple[str, Floats]]:
        """The suspicion by each part, in the order of `reason_names`."""
        indptr, others = references(self._known, anchors, positives)
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

    def _own(self, table: Table, anchors: NDArray[np.int64]) -> NDArray[np.int64]:
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


def _sizes(
    texts: tuple[int, int], vectors: tuple[int, int], positives: Positives | None, *, shared_ids: bool
) -> tuple[int | None, int | None]:
    """The number of items and of anchors, None if unknown. Raises if parts are of different sizes."""
    totals: list[int | None] = []
    for what, *sizes in zip(("item", "anchor"), texts, vectors, strict=True):
        given = sorted({size for size in sizes if size})
        if len(given) > 1:
            raise_invalid(f"{what}_texts", f"as many as `{what}_vectors`", f"{given[0]} and {given[1]}")
        totals.append(given[0] if given else None)
    n_items, n_anchors = totals[0], totals[0] if shared_ids else totals[1]
    if positives is not None:
        known = (("item", n_items, positives.n_items), ("anchor", n_anchors, positives.n_anchors))
        for what, size, n_known in known:
            if size is not None and n_known > size:
                raise_invalid("positives", f"of at most {size} {what}s, like the texts or vectors", n_known)
    return n_items, n_anchors
