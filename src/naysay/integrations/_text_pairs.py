"""Pairs of texts as a data set holds them: each distinct text once, and rows that point to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import offsets
from naysay.checks import check_one_of, raise_invalid
from naysay.detectors._text_hash import folded_blocks, keys_of
from naysay.encode._inputs import distinct, text_array
from naysay.positives import Positives

Ids = NDArray[np.int64]
_BLOCK = 4096  # texts that are Python strings at a time


@final
@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The two columns of a data set.

    Args:
        names: [anchor, positive], as they are called.
        anchors: Arrow, a text for each row.
        positives: Arrow, a text for each row.
    """

    names: list[str]
    anchors: Any
    positives: Any


def read_columns(dataset: Any, anchor: str | None, positive: str | None) -> Columns:
    """Two columns of a `datasets.Dataset`, an Arrow table, or a dictionary of lists; by default the first two.

    A name that is not there is refused: to take the first column instead would mine something else.
    """
    import pyarrow as pa

    if isinstance(dataset, Mapping) and any(hasattr(part, "column_names") for part in dataset.values()):
        raise_invalid("dataset", "one split", f"{len(dataset)}: {', '.join(map(repr, dataset))}", "Pass dataset[name].")
    if isinstance(dataset, Mapping):
        names, table = [*dataset], dataset
    elif isinstance(dataset, pa.Table) or (hasattr(dataset, "select_columns") and hasattr(dataset, "__len__")):
        names, table = [*dataset.column_names], dataset
    else:
        rule = "a datasets.Dataset, an Arrow table or a dictionary of columns"
        raise_invalid("dataset", rule, type(dataset).__name__)
    chosen = []
    for place, (parameter, name) in enumerate((("anchor_column_name", anchor), ("positive_column_name", positive))):
        if name is None and len(names) <= place:
            raise_invalid("dataset", "of at least two columns", f"{len(names)}: {', '.join(map(repr, names))}")
        chosen.append(names[place] if name is None else name)
        check_one_of(parameter, chosen[place], names)
    if chosen[0] == chosen[1]:
        raise_invalid("positive_column_name", "another column than that of the anchors", repr(chosen[1]))
    if not isinstance(dataset, Mapping | pa.Table):
        table = dataset.select_columns(chosen).with_format("arrow")[:]  # rows as selected and shuffled
    anchors, positives = (text_array(f"dataset[{name!r}]", table[name]) for name in chosen)
    if len(anchors) != len(positives):
        raise_invalid("dataset", "columns of one length", f"{len(anchors)} anchors and {len(positives)} positives")
    if len(anchors) == 0:
        raise_invalid("dataset", "of at least one row", "none")
    return Columns(chosen, anchors, positives)


@final
@dataclass(frozen=True, slots=True, eq=False)
class TextPairs:
    """Who is paired with whom.

    Args:
        queries: Arrow, (n,) the anchors, each once, in the order in which they are met.
        corpus: Arrow, (m,) the documents, each once: the corpus that was given, then the positives.
        anchors: (p,) the pairs, each once: by anchor, and those of an anchor in the order in which they are met.
        items: (p,) the pairs, each once: by anchor, and those of an anchor in the order in which they are met.
        rows: How many rows the data set has.
        largest: How many of them the anchor with the most.
    """

    queries: Any
    corpus: Any
    anchors: Ids
    items: Ids
    rows: int
    largest: int

    @property
    def indptr(self) -> Ids:
        """(n + 1,) where the pairs of each anchor begin."""
        return offsets(np.bincount(self.anchors, minlength=len(self.queries)))

    def known(self) -> Positives:
        """The pairs, as the search leaves them out."""
        return Positives.from_pairs(self.anchors, self.items, len(self.queries), len(self.corpus))


def pair_up(columns: Columns, corpus: Any) -> TextPairs:
    """The pairs of two columns; documents of `corpus`, a list of texts or None, come first."""
    import pyarrow as pa

    queries, anchors = distinct(columns.anchors)
    extra = 0
    documents = columns.positives
    if corpus is not None:
        given = text_array("corpus", corpus)
        extra, documents = len(given), pa.concat_arrays([given, documents])
    texts, rows = distinct(documents)
    items = rows[extra:]
    _, first = np.unique(anchors * len(texts) + items, return_index=True)
    first = first[np.lexsort((first, anchors[first]))]
    return TextPairs(
        queries, texts, anchors[first], items[first], rows=len(anchors), largest=int(np.bincount(anchors).max())
    )


def own_texts(pairs: TextPairs) -> tuple[Ids, Ids]:
    """(anchors, items): documents that are the anchor's own text."""
    import pyarrow.compute as pc

    places = pc.index_in(pairs.queries, value_set=pairs.corpus)
    anchors = np.flatnonzero(places.is_valid().to_numpy(zero_copy_only=False))
    return anchors, places.drop_null().to_numpy(zero_copy_only=False).astype(np.int64)


def twin_texts(pairs: TextPairs) -> tuple[Ids, Ids]:
    """(anchors, items): documents that read like the anchor, or like one of its positives, once both are folded.

    Folded: Unicode NFKC, case, spaces, invisible marks, punctuation (`naysay.detectors.Duplicates`). Every text is folded
    once; then it is a look-up of 64 bits. The documents themselves are among them.
    """
    asked, there = _keys(pairs.queries), _keys(pairs.corpus)
    n = len(asked)
    whose = np.concatenate([np.arange(n), pairs.anchors])
    wanted = np.concatenate([asked, there[pairs.items]])
    whose, wanted = whose[wanted != 0], wanted[wanted != 0]  # an empty text is like nothing
    order = np.argsort(there, kind="stable")
    starts, stops = (np.searchsorted(there[order], wanted, side) for side in ("left", "right"))
    counts = stops - starts
    slots = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(starts, counts)
    return np.repeat(whose, counts), order[slots]


def _keys(texts: Any) -> NDArray[np.uint64]:
    """(n,) 64 bits of each folded text, 0 for an empty one."""
    found = np.empty(len(texts), np.uint64)
    for start in range(0, len(texts), _BLOCK):
        block = texts.slice(start, _BLOCK).to_pylist()
        for folded in folded_blocks(block, punctuation=True):
            found[start : start + len(block)] = keys_of(folded)
    return found
