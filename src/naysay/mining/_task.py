"""Task: a mining job whose arguments have been checked; and Rows: some of its anchors, mined without the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import check_one_of, check_range, raise_invalid, shown, whole_numbers
from naysay.detectors.duplicates import Duplicates
from naysay.detectors.hold_out import one_per_anchor
from naysay.mining._known import kinds_of, one_each, pairs_of, read_counts
from naysay.mining._threshold import check_judge, is_detector, judge_of
from naysay.mining.judge import check_detector
from naysay.mining.options import MiningOptions
from naysay.mining.select import check_quotas
from naysay.positives import POSITIVE, Positives
from naysay.rng import rng_for
from naysay.search._scores import Survey
from naysay.search.vectors import Vectors, as_vectors
from naysay.types import Query

Ids = NDArray[np.int64]
Lists = Mapping[str, Ids]
SEARCH, LEAST_DEPTH, DEPTH_FACTOR = "search", 100, 4
# Steps of the job's seed, so that one random choice does not move another.
HELD_OUT, SAMPLED, SELECTED, FILLED = range(4)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """What all anchors of a job share.

    Args:
        queries: (n, d) vectors.
        corpus: (N, d) vectors.
        known: Known pairs of any kind. They are never negatives.
        options: The options of `mine`.
        counts: (n,) k of each anchor, or None for "auto".
        width: The largest k there can be.
        depth: Number of candidates to search.
        lists: {name: (n, m) ids} of other sources.
        duplicates: A detector of duplicates, or None.
        kinds: {reason: (pairs,) which known pairs are left out for it}.
        firsts: (n,) a positive of each anchor, or None if an anchor has none.
        surveys: The norms of queries and corpus, once all vectors have been checked.
        index: An index that replaces the exact search, or None.
        recall: The measured recall of the index.
        slots: How many candidates of a deeper search fit in memory, or None.
        on_progress: Called with how many more anchors have been searched for, as a fraction, or None.
    """

    queries: Vectors
    corpus: Vectors
    known: Positives
    options: MiningOptions
    counts: Ids | None
    width: int
    depth: int
    lists: Lists
    duplicates: Any
    kinds: Mapping[str, NDArray[np.bool_]]
    firsts: Ids | None
    surveys: tuple[Survey, Survey] | None = None
    index: Any = None
    recall: float | None = None
    slots: int | None = None
    on_progress: Callable[[float], None] | None = None

    @property
    def may_deepen(self) -> bool:
        """Whether anchors whose candidates are all suspected are searched further."""
        options = self.options
        return options.depth is None and options.rank_range is None and options.rescore is None

    def held_out(self) -> Ids:
        """Places in `known.pairs()` of one positive of each anchor that has some, drawn by the seed."""
        anchors, _ = self.known.pairs()
        positive = np.flatnonzero(self.kinds["positive"])
        rng = rng_for(self.options.seed, HELD_OUT)
        return positive[one_per_anchor(anchors[positive], rng=rng)] if len(positive) else positive

    def query(self, start: int, stop: int, queries: Vectors) -> Query:
        """What a judge is given for the anchors from start to stop, whose vectors are `queries`."""
        positives = None if self.firsts is None else self.firsts[start:stop]
        with_vectors = self.duplicates is not None or is_detector(self.options.judge)
        vectors = queries.rows(0, queries.n) if with_vectors else None
        return Query(np.arange(start, stop), positives=positives, vectors=vectors)

    def rows(self, start: int, stop: int, known_scores: NDArray[np.float32]) -> Rows:
        """The anchors from start to stop; known_scores are those of all known pairs."""
        known, queries = self.known, self.queries
        pairs = slice(int(known.indptr[start]), int(known.indptr[stop]))
        if (start, stop) != (0, queries.n):
            relation = None if known.relation is None else known.relation[pairs]
            indptr = known.indptr[start : stop + 1] - pairs.start
            known = Positives(indptr, known.indices[pairs], known.n_items, relation=relation)
            queries = as_vectors("queries", queries.rows(start, stop))
        return Rows(
            start=start,
            queries=queries,
            known=known,
            known_scores=known_scores[pairs],
            kinds={reason: chosen[pairs] for reason, chosen in self.kinds.items()},
            counts=None if self.counts is None else self.counts[start:stop],
            lists={name: np.asarray(ids[start:stop], np.int64) for name, ids in self.lists.items()},
            query=self.query(start, stop, queries),
        )


@final
@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Some anchors of a job, numbered from 0 here.

    Args:
        start: The number of the first among all anchors.
        queries: Their vectors.
        known: Their known pairs.
        known_scores: The scores of these.
        kinds: {reason: which of these are left out for it}.
        counts: k of each, or None for "auto".
        lists: {name: ids} of other sources.
        query: What a judge is given. Its anchors have their numbers among all.
    """

    start: int
    queries: Vectors
    known: Positives
    known_scores: NDArray[np.float32]
    kinds: Mapping[str, NDArray[np.bool_]]
    counts: Ids | None
    lists: Lists
    query: Query


def task_of(queries: Vectors, corpus: Vectors, known: Positives, k: Any, lists: Lists, options: MiningOptions) -> Task:
    """Check the arguments of `mine` against each other, all but the values of the vectors.

    Args:
        queries: As `as_vectors` returns them.
        corpus: As `as_vectors` returns them.
        known: As `known_of` returns it.
        k: As `mine` takes it.
        lists: As `read_sources` returns them.
        options: All other options.
    """
    if queries.width != corpus.width:
        raise_invalid("queries", f"of width {corpus.width}, like `corpus`", queries.width)
    if corpus.n == 0:
        raise_invalid("corpus", "of at least one vector", "none")
    if isinstance(k, str):
        check_one_of("k", k, ("auto",))
    counts = None if isinstance(k, str) else read_counts(k, queries.n)
    labelled = len(np.unique(pairs_of(known, POSITIVE)[0]))
    check_judge(
        judge_of(options.judge, np.ones(max(1, queries.n), np.float32)),
        labelled,
        auto_k=counts is None,
        duplicates=options.duplicates,
        rescored=options.rescore is not None,
    )
    _check_selection(options, counts, (SEARCH, *lists), corpus.n)
    if options.rescore_budget is not None and options.rescore_budget < labelled:
        rule = f"at least {labelled}, one positive of each anchor"
        raise_invalid("rescore_budget", rule, options.rescore_budget)
    width = options.max_k if counts is None else int(k if np.ndim(k) == 0 else counts.max(initial=0))
    return Task(
        queries=queries,
        corpus=corpus,
        known=known,
        options=options,
        counts=counts,
        width=width,
        depth=_depth(options, width, corpus.n),
        lists=lists,
        duplicates=_duplicates(options.duplicates, known, same_ids=bool(options.same_ids)),
        kinds=kinds_of(known, same_ids=bool(options.same_ids)),
        firsts=one_each(known),
    )


def read_sources(sources: Any, n: int, n_items: int) -> dict[str, Ids]:
    """{name: (n, m) ids} of other retrievers."""
    if sources is None:
        return {}
    if not isinstance(sources, Mapping) or not all(isinstance(name, str) for name in sources):
        raise_invalid("sources", "a dictionary {name: ids}", shown(sources))
    lists = {}
    for name, given in sources.items():
        if name in (SEARCH, "random"):
            raise_invalid("sources", "named other than 'search' and 'random'", repr(name))
        ids = whole_numbers("sources", to_numpy(getattr(given, "ids", given)), "(n, m)").astype(np.int64)
        if len(ids) != n:
            raise_invalid("sources", f"of {n} rows, like queries", f"{len(ids)} of {name!r}")
        check_range("sources", ids, n_items, "corpus rows", least=-1)
        lists[name] = ids
    return lists


def _check_selection(options: MiningOptions, counts: Ids | None, names: tuple[str, ...], n_items: int) -> None:
    """Raise if groups do not fit the corpus, or quotas the sources and k."""
    if options.groups is not None:
        size = len(whole_numbers("groups", to_numpy(options.groups)))
        if size != n_items:
            raise_invalid("groups", f"({n_items},), the group of each corpus row", f"({size},)")
    if options.quotas is not None:
        if counts is None:
            raise_invalid("quotas", "left out where `k` is auto", shown(options.quotas))
        check_quotas(options.quotas, names, counts)


def _depth(options: MiningOptions, width: int, n_items: int) -> int:
    """Number of candidates: max(4 k, 100) beyond the ranks that are skipped, at most the corpus."""
    if options.depth is not None:
        return min(options.depth, n_items)
    first, last = (1, None) if options.rank_range is None else options.rank_range
    depth = first - 1 + max(DEPTH_FACTOR * width, LEAST_DEPTH)
    return min(depth if last is None else min(depth, last), n_items)


def _duplicates(given: Any, known: Positives, *, same_ids: bool) -> Any:
    """A detector of duplicates, or None: as given, or made from the texts of the corpus, and of the queries."""
    if given is None:
        return None
    if hasattr(given, "suspicion"):
        check_detector("duplicates", given)
        return given
    texts, others = given, None
    if isinstance(given, tuple) and len(given) == 2 and not any(isinstance(part, str | bytes) for part in given):
        texts, others = given
    if isinstance(texts, str | bytes) or not hasattr(texts, "__len__"):
        rule = "a detector, the texts of the corpus, or (corpus texts, query texts)"
        raise_invalid("duplicates", rule, shown(given))
    for what, part, size in (("corpus", texts, known.n_items), ("query", others, known.n_anchors)):
        if part is not None and len(part) != size:
            raise_invalid("duplicates", f"{size} {what} texts", len(part))
    positives = Positives.from_pairs(*pairs_of(known, POSITIVE), known.n_anchors, known.n_items)
    return Duplicates(item_texts=texts, anchor_texts=others, positives=positives, shared_ids=same_ids)
