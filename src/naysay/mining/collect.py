"""Collect: one search, what other sources bring, and everything out that can never be a negative."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.mining.candidates import Candidates, canonical_order
from naysay.mining.exclude import exclude
from naysay.mining.found import Found
from naysay.mining.join import join
from naysay.mining.known import kinds_of
from naysay.mining.pair_scores import lowest_of, pair_scores
from naysay.mining.ranks import with_left_out
from naysay.mining.same_vectors import same_vectors
from naysay.mining.vectors import Vectors
from naysay.positives import Positives
from naysay.types import Query

Ids = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Collected:
    """Candidates of all sources without what is known, and the known pairs with their scores.

    known_scores   (pairs,) float32, in the order of known.pairs()
    positives      (anchors, items, scores) of the known positives
    """

    candidates: Candidates
    known_scores: NDArray[np.float32]
    positives: tuple[Ids, Ids, NDArray[np.float32]]


def collect(
    found: Found,
    sources: Mapping[str, Ids],
    queries: Vectors,
    corpus: Vectors,
    known: Positives,
    metric: str,
    *,
    same_ids: bool,
    equal_vectors: bool,
    twins: Any,
    query: Query,
) -> Collected:
    """All candidates, with their ranks, scored by one kernel; what is known is counted wherever it was left out.

    found           the search's answer without known pairs;  sources  {name: (n, m) ids} of others
    equal_vectors   whether what has a positive's own vector is a twin;  twins  a detector of more, or None
    """
    anchors, items = known.pairs()
    scores = pair_scores(queries, corpus, anchors, items, metric)
    kinds = kinds_of(known, same_ids=same_ids)
    searched = with_left_out(Candidates.of(found), anchors, items, scores, kinds)
    positive = kinds["positive"]
    positives = anchors[positive], items[positive], scores[positive]
    searched = replace(searched, positive_scores=lowest_of(positives[0], positives[2], len(searched)))
    parts = [searched, *(listed(name, ids, queries, corpus, metric) for name, ids in sources.items())]
    candidates = exclude(join(*parts), known, same_ids=same_ids)
    if equal_vectors:
        like = positive | kinds["anchor"]
        same = [same_vectors(part, corpus, anchors[like], items[like], scores[like]) for part in parts]
        candidates = candidates.drop(np.concatenate(same, axis=1), "twin")
    if twins is not None:
        candidates = exclude(candidates, twins=twins, query=query)
    return Collected(candidates, scores, positives)


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
