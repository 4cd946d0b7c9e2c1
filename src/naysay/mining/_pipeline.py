"""Task: a mining job that has been checked, and Rows: some of its anchors, which can be mined without the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import check_one_of, public
from naysay.detectors.hold_out import one_per_anchor
from naysay.mining import _requests as requests
from naysay.mining._finish import HELD_OUT
from naysay.mining._known import kinds_of, one_each
from naysay.mining.backfill import ON_SHORT
from naysay.mining.rescore import ScorePairs
from naysay.positives import Positives
from naysay.rng import rng_for
from naysay.search.vectors import Vectors, as_vectors
from naysay.types import Query

Ids = NDArray[np.int64]
Lists = Mapping[str, Ids]


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """What all anchors of a job share: the arguments of `mine`, once they have been checked.

    Args:
        counts: (n,) k of each anchor, or None for "auto".
        width: The largest k there can be.
        depth: Of the search.
        may_deepen: Whether it may be searched further.
        lists: {name: (n, m) ids} of other sources.
        duplicates: A detector, or None.
        judges: Whether there is a judge at all.
        kinds: {reason: (pairs,)} for which of them each known pair is left out.
        firsts: (n,) a positive of each anchor, or None if an anchor has none.
        index: What answers in place of an exact search, or None.
        recall: How much of the nearest it finds.
        slots: Candidates of a deeper search that are held at a time, or None.
        tell: Called with how many more anchors have been searched for, in fractions, or None.
    """

    queries: Vectors
    corpus: Vectors
    known: Positives
    metric: str
    counts: Ids | None
    most: int
    width: int
    depth: int
    may_deepen: bool
    lists: Lists
    ranks: tuple[int, int | None] | None
    duplicates: Any
    judges: bool
    with_vectors: bool
    same_ids: bool
    select: str
    temperature: float | None
    groups: Any
    balance: float | None
    quotas: Mapping[str, int] | None
    on_short: str
    seed: int
    kinds: Mapping[str, NDArray[np.bool_]]
    firsts: Ids | None
    rescore: ScorePairs | None = None
    rescore_batch: int = 256
    index: Any = None
    recall: float | None = None
    engine: str = "auto"
    budget: int | None = None
    threads: int | None = None
    slots: int | None = None
    tell: Callable[[float], None] | None = None

    def held_out(self) -> Ids:
        """Places in `known.pairs()` of one positive of each anchor that has some, drawn by the seed."""
        whose, _ = self.known.pairs()
        positive = np.flatnonzero(self.kinds["positive"])
        pick = rng_for(self.seed, HELD_OUT)
        return positive[one_per_anchor(whose[positive], rng=pick)] if len(positive) else positive

    def rows(self, start: int, stop: int, known_scores: NDArray[np.float32]) -> Rows:
        """The anchors from start to stop; known_scores are those of all known pairs."""
        known, whole = self.known, (start, stop) == (0, self.queries.n)
        first, last = int(known.indptr[start]), int(known.indptr[stop])
        pairs = slice(first, last)
        if not whole:
            relation = None if known.relation is None else known.relation[pairs]
            indptr = known.indptr[start : stop + 1] - first
            known = Positives(indptr, known.indices[pairs], known.n_items, relation=relation)
        queries = self.queries
        if not whole:
            queries = as_vectors("queries", queries.rows(start, stop))
        positives = self.firsts
        query = Query(
            np.arange(start, stop),
            positives=None if positives is None else positives[start:stop],
            vectors=queries.rows(0, queries.n) if self.with_vectors else None,
        )
        return Rows(
            start=start,
            queries=queries,
            known=known,
            known_scores=known_scores[pairs],
            kinds={reason: chosen[pairs] for reason, chosen in self.kinds.items()},
            counts=None if self.counts is None else self.counts[start:stop],
            lists={name: np.asarray(ids[start:stop], np.int64) for name, ids in self.lists.items()},
            query=query,
        )


def task_of(
    queries: Vectors,
    corpus: Vectors,
    known: Positives,
    k: Any,
    lists: Lists,
    *,
    metric: str,
    judge: Any,
    seed: int,
    same_ids: bool,
    duplicates: Any = None,
    depth: int | None,
    ranks: tuple[int, int | None] | None,
    floor: float | None,
    rescore: ScorePairs | None = None,
    rescore_budget: int | None = None,
    rescore_batch: int = 256,
    select: str,
    temperature: float | None,
    groups: Any = None,
    balance: float | None,
    quotas: Mapping[str, int] | None,
    on_short: str,
    most: int,
    engine: str = "auto",
    budget: int | None,
    threads: int | None,
) -> Task:
    """Check what `mine` is asked, all but the numbers of the vectors; the arguments are those of `mine`.

    Args:
        known: As `known_of` reads it.
        lists: As `read_sources` does.
    """
    requests.check_vectors(queries, corpus, metric)
    counts = requests.read_k(k, queries.n, most)
    requests.check_judge(judge, duplicates, rescore, known, auto_k=counts is None)
    options: dict[str, Any] = {"temperature": temperature, "groups": groups, "balance": balance}
    requests.check_selection(select, options, quotas, counts, (requests.SEARCH, *lists), corpus.n)
    labelled = int(np.count_nonzero(known.count()))
    requests.check_stages(ranks, floor, rescore, rescore_budget, rescore_batch, labelled)
    check_one_of("on_short", on_short, ON_SHORT)
    width = most if counts is None else int(k if np.ndim(k) == 0 else counts.max(initial=0))
    return Task(
        queries=queries,
        corpus=corpus,
        known=known,
        metric=metric,
        counts=counts,
        most=most,
        width=width,
        depth=requests.read_depth(depth, width, corpus.n, ranks),
        may_deepen=depth is None and ranks is None,
        lists=lists,
        ranks=ranks,
        duplicates=requests.read_duplicates(duplicates, known, same_ids=same_ids),
        judges=judge is not None,
        with_vectors=duplicates is not None or not isinstance(judge, str | None),
        same_ids=bool(same_ids),
        select=select,
        **options,
        quotas=quotas,
        on_short=on_short,
        seed=seed,
        kinds=kinds_of(known, same_ids=bool(same_ids)),
        firsts=one_each(known),
        rescore=rescore,
        rescore_batch=rescore_batch,
        engine=engine,
        budget=budget,
        threads=threads,
    )


@final
@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Some anchors of a job, numbered from 0 here; `start` is the number of the first among all.

    Args:
        queries: Their vectors.
        known: What is known of them, and for which reason it is out.
        known_scores: What is known of them, and for which reason it is out.
        kinds: What is known of them, and for which reason it is out.
        counts: K of each, or None.
        lists: Of other sources.
        query: What a judge is asked: its anchors have their numbers among all.
    """

    start: int
    queries: Vectors
    known: Positives
    known_scores: NDArray[np.float32]
    kinds: Mapping[str, NDArray[np.bool_]]
    counts: Ids | None
    lists: Lists
    query: Query
