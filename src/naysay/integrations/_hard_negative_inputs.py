"""The inputs of `mine_hard_negatives`: its arguments, checked, and pairs of texts as numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import offsets
from naysay.checks import check_bool, check_one_of, check_whole, raise_invalid, shown, shown_names
from naysay.detectors._text_hash import folded_blocks, keys_of
from naysay.encode._inputs import distinct, text_array
from naysay.mining.judge import check_judge, check_judge_text, judge_of
from naysay.mining.problem import pairs_of
from naysay.positives import IGNORE, Positives
from naysay.search._scores import METRICS
from naysay.tables import data_set_columns, data_set_table, is_data_set

Ids = NDArray[np.int64]
BOUNDS = ("absolute_margin", "relative_margin", "max_score", "min_score")
STRATEGIES = ("top", "random", "softmax", "spread")
MORE = 10  # candidates for each negative, where some will be dropped
_METRICS = {"cosine": "cosine", "dot": "dot", "euclidean": "l2"}
_BLOCK = 4096  # texts that are Python strings at a time


def read_columns(dataset: Any, anchor: str | None, positive: str | None) -> dict[str, Any]:
    """Return {name: texts} of the anchors and the positives, by default of the first two columns.

    An unknown name raises: to take the first column instead would mine something else.
    """
    import pyarrow as pa

    if isinstance(dataset, Mapping) and any(hasattr(part, "column_names") for part in dataset.values()):
        raise_invalid("dataset", "one split", f"{len(dataset)}: {', '.join(map(repr, dataset))}", "Pass dataset[name].")
    if isinstance(dataset, Mapping):
        names, table = [*dataset], dataset
    elif isinstance(dataset, pa.Table):
        names, table = dataset.column_names, dataset
    elif is_data_set(dataset):
        names, table = data_set_columns(dataset), dataset
    else:
        rule = "a datasets.Dataset, an Arrow table or a dictionary of columns"
        raise_invalid("dataset", rule, type(dataset).__name__)
    chosen = []
    for place, (parameter, name) in enumerate((("anchor_column_name", anchor), ("positive_column_name", positive))):
        if name is None and len(names) <= place:
            raise_invalid("dataset", "of at least two columns", f"{len(names)}: {shown_names(names)}")
        chosen.append(names[place] if name is None else name)
        check_one_of(parameter, chosen[place], names)
    if chosen[0] == chosen[1]:
        raise_invalid("positive_column_name", "another column than that of the anchors", repr(chosen[1]))
    if not isinstance(dataset, Mapping | pa.Table):
        table = data_set_table(dataset, chosen)
    anchors, positives = (text_array(f"dataset[{name!r}]", table[name]) for name in chosen)
    if len(anchors) != len(positives):
        raise_invalid("dataset", "columns of one length", f"{len(anchors)} anchors and {len(positives)} positives")
    if len(anchors) == 0:
        raise_invalid("dataset", "of at least one row", "none")
    return dict(zip(chosen, (anchors, positives), strict=True))


@final
@dataclass(frozen=True, slots=True, eq=False)
class TextPairs:
    """Distinct texts, as Arrow arrays, and pairs."""

    queries: Any  # (n,) the distinct anchors, in order of first occurrence
    corpus: Any  # (m,) the distinct documents: the corpus that was given, then the positives
    anchors: Ids  # (p,) of the distinct pairs, sorted; pairs of an anchor in order of first occurrence
    items: Ids  # (p,) of the distinct pairs
    rows: int  # of the data set
    largest: int  # the most rows of one anchor

    @property
    def indptr(self) -> Ids:
        """(n + 1,) where the pairs of each anchor begin."""
        return offsets(np.bincount(self.anchors, minlength=len(self.queries)))

    def known(self) -> Positives:
        """Return the pairs, which the search excludes."""
        return Positives.from_pairs(self.anchors, self.items, len(self.queries), len(self.corpus))


def pair_up(columns: dict[str, Any], corpus: Any) -> TextPairs:
    """Number the texts of two columns; documents of `corpus`, a list of texts or None, come first."""
    import pyarrow as pa

    given_anchors, documents = columns.values()
    queries, anchors = distinct(given_anchors)
    extra = 0
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
    """(anchors, items): documents that equal the anchor's text."""
    import pyarrow.compute as pc

    places = pc.index_in(pairs.queries, value_set=pairs.corpus)
    anchors = np.flatnonzero(places.is_valid().to_numpy(zero_copy_only=False))
    return anchors, places.drop_null().to_numpy(zero_copy_only=False).astype(np.int64)


def duplicate_texts(pairs: TextPairs) -> tuple[Ids, Ids]:
    """(anchors, items): documents whose folded text equals that of the anchor, or of one of its positives.

    Folded: Unicode NFKC, case, spaces, invisible marks, punctuation (`naysay.detectors.Duplicates`). Every text is
    folded once, then compared by a 64-bit hash. The positives themselves are included.
    """
    query_keys, corpus_keys = _keys(pairs.queries), _keys(pairs.corpus)
    anchors = np.concatenate([np.arange(len(query_keys)), pairs.anchors])
    keys = np.concatenate([query_keys, corpus_keys[pairs.items]])
    anchors, keys = anchors[keys != 0], keys[keys != 0]  # an empty text equals nothing
    order = np.argsort(corpus_keys, kind="stable")
    starts, stops = (np.searchsorted(corpus_keys[order], keys, side) for side in ("left", "right"))
    counts = stops - starts
    slots = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(starts, counts)
    return np.repeat(anchors, counts), order[slots]


def never_negative(pairs: TextPairs, *, duplicates: bool, include_positives: bool) -> Positives:
    """Return the pairs that are never negatives: positives, the anchor's own text, and duplicates."""
    excluded = pairs.known().with_ignored(*own_texts(pairs))
    if duplicates:
        excluded = excluded.with_ignored(*duplicate_texts(pairs))
    if include_positives:
        excluded = Positives.from_pairs(*pairs_of(excluded, IGNORE), excluded.n_anchors, excluded.n_items)
    return excluded


def _keys(texts: Any) -> NDArray[np.uint64]:
    """(n,) a 64-bit hash of each folded text, 0 for an empty one."""
    keys = np.empty(len(texts), np.uint64)
    for start in range(0, len(texts), _BLOCK):
        block = texts.slice(start, _BLOCK).to_pylist()
        for folded in folded_blocks(block, punctuation=True):
            keys[start : start + len(block)] = keys_of(folded)
    return keys


def check_switches(switches: Mapping[str, Any], processes: Any, model: Any) -> None:
    """Raise for what is not True or False, and for processes that the model cannot have."""
    for name, value in switches.items():
        check_bool(name, value)
    names = isinstance(processes, list) and all(isinstance(name, str) for name in processes)
    if not names and not isinstance(processes, bool):
        raise_invalid("use_multi_process", "True, False or a list of devices", shown(processes))
    if processes and not hasattr(model, "start_multi_process_pool"):
        rule = "False where the model has no method start_multi_process_pool"
        raise_invalid("use_multi_process", rule, shown(processes))


def read_judge(judge: Any, n_anchors: int, *, rescored: bool) -> Any:
    """Return a judge as `mine` takes it: None, a text that needs scores or vectors, or a detector."""
    if isinstance(judge, str):
        check_judge_text("judge", judge)
    tried = judge_of(judge, np.ones(n_anchors, np.float32))
    check_judge(tried, n_anchors, auto_k=False, duplicates=None, rescored=rescored)
    return None if tried is None else judge


def window(range_min: Any, range_max: Any, num_negatives: Any, largest: int, *, more: bool) -> tuple[int, int]:
    """Return (range_min, range_max): ranks from range_min + 1 to range_max.

    Without range_max it is the sum of range_min, of the candidates needed (`more`: some may be dropped, or chosen
    from), and of a margin for positives. The search excludes positives, so one anchor with thousands of them need not
    widen the window of all: the margin is at most ten for each negative.
    """
    count = check_whole("num_negatives", num_negatives, 1)
    if count >= 1 << 31:
        raise_invalid("num_negatives", "below 2^31", count)
    first = check_whole("range_min", range_min, 0)
    if range_max is None:
        return first, first + (MORE if more else 1) * count + min(largest, MORE * count)
    last = check_whole("range_max", range_max, 1)
    if last - first < count:
        rule = f"at least {first + count}, range_min + num_negatives"
        raise_invalid("range_max", rule, last, "Lower num_negatives or range_min, or raise range_max.")
    return first, last


def metric_of(model: Any, metric: Any) -> str:
    """Return the metric: as given, or the model's own."""
    if metric is not None:
        check_one_of("metric", metric, tuple(METRICS))
        return str(metric)
    name = getattr(model, "similarity_fn_name", None)
    name = "cosine" if name is None else str(getattr(name, "value", name))
    if name not in _METRICS:
        advice = "Pass metric='cosine', 'dot' or 'l2'."
        raise_invalid("model", "of a similarity that can be searched by", repr(name), advice)
    return _METRICS[name]


def check_names(names: list[str], others: list[str]) -> None:
    """Raise if a column has the name of one that is added."""
    for parameter, name in zip(("anchor_column_name", "positive_column_name"), names, strict=True):
        if name in others:
            advice = "Rename it: the result has a column of that name."
            raise_invalid(parameter, f"another name than {', '.join(map(repr, others))}", repr(name), advice)
