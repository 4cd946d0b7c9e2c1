"""From judged candidates to negatives: k of each anchor, which of them, and what fills rows that are short."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.mining.backfill import backfill
from naysay.mining.candidates import Candidates
from naysay.mining.judge import judge as judged
from naysay.mining.rescore import ScorePairs, answers_of
from naysay.mining.select import select
from naysay.positives import Positives
from naysay.rng import rng_for
from naysay.search._pair_scores import pair_scores, taken
from naysay.search.vectors import Vectors
from naysay.types import Query

# Steps of the job's seed, so that one choice does not move another.
HELD_OUT, SAMPLED, SELECTED, FILLED = range(4)


def finish(
    candidates: Candidates,
    judge: Any,
    *,
    counts: NDArray[np.int64] | None,
    most: int,
    how: str,
    temperature: float | None,
    groups: Any,
    balance: float | None,
    quotas: Mapping[str, int] | None,
    on_short: str,
    seed: int,
    queries: Vectors,
    corpus: Vectors,
    metric: str,
    known: Positives,
    query: Query,
    rescore: ScorePairs | None,
    batch: int,
    first: int = 0,
) -> tuple[Candidates, NDArray[np.int64]]:
    """The candidates with the negatives marked, and k of each anchor.

    Random ones that fill a row are scored and judged like others; a suspect is dropped, and leaves the row short.

    Args:
        counts: None: as many as are in play, at most `most`. The others are what `mine` was given.
        first: The number of the first row, where these are a part of all.
    """
    if counts is None:
        counts = np.minimum(np.count_nonzero(candidates.kept, axis=1), most)
    chosen = select(
        candidates,
        counts,
        how,
        rng=rng_for(seed, SELECTED) if how in ("random", "softmax") else None,
        temperature=temperature,
        groups=groups,
        similar=_similar(corpus) if how == "mmr" else None,
        balance=balance,
        quotas=quotas,
        first=first,
    )
    if on_short != "random":
        return backfill(chosen, counts, on_short, first=first), counts

    def score(anchors: NDArray[np.int64], ids: NDArray[np.int64]) -> NDArray[np.float32]:
        if rescore is not None:
            return answers_of(rescore, anchors, ids, batch)
        return pair_scores(queries, corpus, anchors, ids, metric)

    filled = backfill(chosen, counts, on_short, known=known, score=score, rng=rng_for(seed, FILLED), first=first)
    width = chosen.ids.shape[1]
    if judge is None or filled.ids.shape[1] == width:
        return filled, counts
    new = np.arange(filled.ids.shape[1]) >= width
    asked = judged(replace(filled, ids=np.where(new, filled.ids, -1)), judge, query=query)
    return replace(filled, why=asked.why, suspicion=asked.suspicion, reasons=asked.reasons), counts


def _similar(corpus: Vectors) -> Any:
    """The vectors of items, (r, m, d)."""
    return lambda ids: taken(corpus, ids.reshape(-1)).reshape(*ids.shape, corpus.width)
