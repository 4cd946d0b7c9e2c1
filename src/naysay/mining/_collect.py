"""Collect: one search, what other sources bring, and everything out that can never be a negative."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.mining._ranks import with_left_out
from naysay.mining._same_vectors import same_vectors
from naysay.mining.candidates import Candidates, canonical_order
from naysay.mining.exclude import exclude
from naysay.mining.join import join
from naysay.positives import Positives
from naysay.search._pair_scores import lowest_of, pair_scores
from naysay.search.found import Found
from naysay.search.vectors import Vectors
from naysay.types import Query, anchor_ids

Ids = NDArray[np.int64]


def collect(
    found: Found,
    sources: Mapping[str, Ids],
    queries: Vectors,
    corpus: Vectors,
    known: Positives,
    known_scores: NDArray[np.float32],
    metric: str,
    kinds: Mapping[str, NDArray[np.bool_]],
    *,
    skipped: Ids | None = None,
    same_ids: bool,
    equal_vectors: bool,
    duplicates: Any,
    query: Query,
) -> Candidates:
    """All candidates, with their ranks, scored by one kernel; what is known is counted wherever it was left out.

    Args:
        found: The search's answer without known pairs.
        sources: {name: (n, m) ids} of others.
        known_scores: Of known.pairs(), in order.
        kinds: {reason: which of them}, as `kinds_of` gives it.
        query: Of these rows: its anchors are their numbers among all.
        skipped: (n,) how many suspects the search passed over, or None.
        equal_vectors: Whether what has a positive's own vector is a duplicate.
        duplicates: A detector of more, or None.
    """
    (anchors, items), scores = known.pairs(), known_scores
    searched = with_left_out(Candidates.of(found), anchors, items, scores, kinds, skipped)
    positive = kinds["positive"]
    searched = replace(searched, positive_scores=lowest_of(anchors[positive], scores[positive], len(searched)))
    parts = [searched, *(listed(name, ids, queries, corpus, metric) for name, ids in sources.items())]
    candidates = join(*parts)
    if same_ids:  # before `exclude` calls it ignored; of a part of the rows, row i is not item i
        candidates = candidates.drop(known.contains(np.arange(len(searched)), candidates.ids), "positive")
        candidates = candidates.drop(candidates.ids == anchor_ids(query)[:, None], "anchor")
    candidates = exclude(candidates, known)
    if equal_vectors:
        like = positive | kinds["anchor"]
        same = [same_vectors(part, corpus, anchors[like], items[like], scores[like]) for part in parts]
        candidates = candidates.drop(np.concatenate(same, axis=1), "duplicate")
    if duplicates is not None:
        candidates = exclude(candidates, duplicates=duplicates, query=query)
    return candidates


def listed(name: str, ids: Ids, queries: Vectors, corpus: Vectors, metric: str) -> Candidates:
    """The list of another source, scored by the vectors and in the order of a search; ranks are those of the list."""
    filled = ids >= 0
    scores = np.full(ids.shape, -np.inf, np.float32)
    scores[filled] = pair_scores(queries, corpus, np.nonzero(filled)[0], ids[filled], metric)
    found = Candidates.of(SimpleNamespace(ids=ids, scores=scores), name)
    order = canonical_order(found, filled)
    ordered: dict[str, Any] = {
        part: np.take_along_axis(getattr(found, part), order, axis=1) for part in ("ids", "scores", "rank", "source")
    }
    return replace(found, **ordered)
