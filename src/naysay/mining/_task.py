"""Task: a mining job whose arguments have been checked; and Rows: some of its anchors, mined without the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import offsets
from naysay.arrays import to_numpy
from naysay.checks import check_range, raise_invalid, shown, whole_numbers
from naysay.detectors._text_hash import read_texts
from naysay.detectors.calibrated import one_per_anchor
from naysay.detectors.duplicates import Duplicates
from naysay.mining._known import Pairs, equal_vectors
from naysay.mining._review import Reviewed, read_reviewed
from naysay.mining.candidates import read_counts
from naysay.mining.judge import check_detector, check_judge, is_detector, judge_of
from naysay.mining.options import MiningOptions
from naysay.mining.select import check_quotas
from naysay.positives import IGNORE, POSITIVE, Positives
from naysay.rng import rng_for
from naysay.search._below import SearchOptions
from naysay.search._survey import Survey
from naysay.search.exact import Found
from naysay.search.vectors import Vectors, as_vectors
from naysay.types import Query

Ids = NDArray[np.int64]
Lists = Mapping[str, Ids]
SEARCH, LEAST_DEPTH, DEPTH_FACTOR = "search", 100, 4
# Steps of the job's seed, so that one random choice does not move another; 5 is that of `mining._review`.
HELD_OUT, SAMPLED, SELECTED, FILLED, FITTED = range(5)


class Shards(Protocol):
    """The passes over the whole corpus, done by workers that read a part of it each. Results are the same."""

    def largest_norm(self, metric: str) -> float:
        """The largest norm; raises if a vector has no score, like `survey`."""

    def matched(self, keys: NDArray[np.uint32], kind: np.dtype[Any]) -> Pairs:
        """What `matched_keys` returns."""

    def search(
        self, queries: Vectors, depth: int, highest: NDArray[np.float32] | None, how: SearchOptions
    ) -> tuple[Found, Ids]:
        """What `how.run` returns."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """What all anchors of a job share."""

    queries: Vectors
    corpus: Vectors
    known: Positives  # known pairs of any kind, which are never negatives
    options: MiningOptions
    counts: Ids | None  # (n,) k of each anchor, or None for "auto"
    width: int  # the largest k there can be
    depth: int  # number of candidates to search
    lists: Lists  # {name: (n, m) ids} of other sources
    duplicates: Any  # a detector of duplicates, or None
    kinds: Mapping[str, NDArray[np.bool_]]  # {reason: (pairs,) which known pairs are left out for it}
    firsts: Ids | None  # (n,) a positive of each anchor, or None if an anchor has none
    own: Positives | None  # the anchors themselves in the corpus: they are ignored in `known`, too
    surveys: tuple[Survey, Survey] | None = None  # the norms of queries and corpus, once all vectors are checked
    reviewed: Reviewed | None = None  # pairs that a person labelled
    index: Any = None  # replaces the exact search
    recall: float | None = None  # of the index, as measured
    shards: Shards | None = None  # read the corpus in this one's place, in several processes
    slots: int | None = None  # how many candidates of a deeper search fit in memory
    on_progress: Callable[[float], None] | None = None  # gets how many more anchors are searched for, as a fraction

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

    def query(self, anchors: Ids, queries: Vectors) -> Query:
        """What a judge is given for some anchors, whose vectors are `queries`."""
        positives = None if self.firsts is None else self.firsts[anchors]
        with_vectors = self.duplicates is not None or is_detector(self.options.judge)
        vectors = queries.rows(0, queries.n) if with_vectors else None
        return Query(anchors, positives=positives, vectors=vectors)

    def some(self, anchors: Ids, known_scores: NDArray[np.float32]) -> Rows:
        """Some anchors, ascending; known_scores are those of all known pairs.

        Random choices depend on the number of the first, so that only neighbours can be filled at random.
        """
        known, pairs = self.known_some(anchors)
        start, queries = int(anchors[0]) if len(anchors) else 0, self.queries
        if len(anchors) < queries.n:
            near = isinstance(pairs, slice)
            queries = as_vectors(
                "queries", queries.rows(start, start + len(anchors)) if near else queries.take(anchors)
            )
        return Rows(
            start=start,
            queries=queries,
            known=known,
            known_scores=known_scores[pairs],
            kinds={reason: chosen[pairs] for reason, chosen in self.kinds.items()},
            counts=None if self.counts is None else self.counts[anchors],
            lists={name: np.asarray(ids[anchors], np.int64) for name, ids in self.lists.items()},
            query=self.query(anchors, queries),
            all_known_scores=known_scores,
        )

    def known_some(self, anchors: Ids) -> tuple[Positives, Ids | slice]:
        """What is known of some anchors, and the places of these pairs among all: a slice if they are neighbours."""
        known, n = self.known, len(anchors)
        if n == known.n_anchors:
            return known, slice(None)
        counts = np.diff(known.indptr)[anchors]
        indptr = offsets(counts)
        pairs: Ids | slice = np.repeat(known.indptr[anchors] - indptr[:-1], counts) + np.arange(indptr[-1])
        if n and anchors[-1] - anchors[0] == n - 1:
            pairs = slice(int(known.indptr[anchors[0]]), int(known.indptr[anchors[-1] + 1]))
        indices = known.indices[pairs]
        relation = known.relation[pairs] if known.relation is not None and len(indices) else None
        return Positives(indptr, indices, known.n_items, relation=relation), pairs


@final
@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Some anchors of a job, numbered from 0 here."""

    start: int  # the number of the first among all anchors
    queries: Vectors
    known: Positives
    known_scores: NDArray[np.float32]
    kinds: Mapping[str, NDArray[np.bool_]]
    counts: Ids | None
    lists: Lists
    query: Query  # what a judge is given; its anchors have their numbers among all
    all_known_scores: NDArray[np.float32]  # of all anchors, to look at some of these again


def task_of(
    queries: Vectors,
    corpus: Vectors,
    known: Positives,
    k: Any,
    lists: Lists,
    options: MiningOptions,
    own: Positives | None = None,
) -> Task:
    """Check the arguments of `mine` against each other, all but the values of the vectors."""
    if queries.width != corpus.width:
        raise_invalid("queries", f"of width {corpus.width}, like `corpus`", queries.width)
    if corpus.n == 0:
        raise_invalid("corpus", "of at least one vector", "none")
    counts = None if isinstance(k, str) and k == "auto" else read_counts(k, queries.n, auto=True)
    check_reachable(options, corpus.n)
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
    width = min(options.max_k, corpus.n) if counts is None else int(k if np.ndim(k) == 0 else counts.max(initial=0))
    depth = _depth(options, width, corpus.n)
    duplicates = _duplicates(options.duplicates, known, own, shared=options.same_ids is True)
    parts = kinds_of(known, own), one_each(known), own
    task = Task(queries, corpus, known, options, counts, width, depth, lists, duplicates, *parts)
    if options.reviewed is None:
        return task
    return replace(task, reviewed=read_reviewed(options.reviewed, queries.n, corpus.n))


def check_corpus_size(k: Any, options: MiningOptions, n_items: int) -> None:
    """Raise if no anchor could have what a job asks for, because the corpus is too small.

    In memory, anchors that are short follow `on_short`. A job of hours with a `k` that no anchor can have is a mistake.
    """
    most = 0 if isinstance(k, str) else int(np.max(to_numpy(k), initial=0))
    if most > n_items:
        raise_invalid("k", f"at most {n_items:,}, the number of documents", f"{most:,}")
    check_reachable(options, n_items)


def check_reachable(options: MiningOptions, n_items: int) -> None:
    """Raise if no candidate can have the ranks or the scores that are asked for."""
    if options.rank_range is not None and options.rank_range[0] > n_items:
        rule = f"a range that begins at rank {n_items:,} or before, the number of documents"
        raise_invalid("rank_range", rule, shown(options.rank_range))
    if options.metric == "cosine" and options.min_score is not None and options.min_score > 1:
        raise_invalid("min_score", "at most 1, the largest cosine", options.min_score)


def without_own_vectors(task: Task) -> tuple[Task, Pairs]:
    """The task without documents that have the vector of their anchor, unless they are kept; and the pairs left out."""
    if task.options.keep_own_text:
        return task, (np.empty(0, np.int64), np.empty(0, np.int64))
    matched = None if task.shards is None else task.shards.matched
    anchors, items = equal_vectors(task.queries, task.corpus, matched)
    new = ~task.known.contains(anchors, items, relation="any")
    anchors, items = anchors[new], items[new]
    if not len(anchors):
        return task, (anchors, items)
    found = Positives.from_pairs(anchors, items, task.known.n_anchors, task.known.n_items)
    own = found if task.own is None else task.own.union(found)
    known = task.known.with_ignored(anchors, items)
    return replace(task, known=known, kinds=kinds_of(known, own), own=own), (anchors, items)


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


def _duplicates(given: Any, known: Positives, own: Positives | None, *, shared: bool) -> Any:
    """A detector of duplicates, or None: as given, or made from the texts of the corpus, and of the queries."""
    if given is None:
        return None
    if hasattr(given, "suspicion"):
        check_detector("duplicates", given)
        return given
    texts, others = given, None
    if isinstance(given, tuple) and len(given) == 2 and not any(isinstance(part, str | bytes) for part in given):
        texts, others = given
    if isinstance(texts, str | bytes) or not hasattr(texts, "__len__") or getattr(texts, "shape", None) == ():
        rule = "a detector, the texts of the corpus, or (corpus texts, query texts)"
        raise_invalid("duplicates", rule, shown(given))
    for what, part, size in (("corpus", texts, known.n_items), ("query", others, known.n_anchors)):
        if part is not None and len(part) != size:
            raise_invalid("duplicates", f"{size} {what} texts", len(part))
    positives = Positives.from_pairs(*pairs_of(known, POSITIVE), known.n_anchors, known.n_items)
    if others is None and own is not None and not shared:  # an anchor that is an item has its text
        texts = read_texts("duplicates", texts)
        rows = dict(zip(*(part.tolist() for part in own.pairs()), strict=True))
        others = [texts[rows[anchor]] if anchor in rows else "" for anchor in range(known.n_anchors)]
    return Duplicates(item_texts=texts, anchor_texts=others, positives=positives, shared_ids=shared)


def pairs_of(known: Positives, relation: int) -> tuple[Ids, Ids]:
    """(anchors, items) of the pairs of one relation, in order."""
    anchors, items = known.pairs()
    if known.relation is None:
        return (anchors, items) if relation == POSITIVE else (anchors[:0], items[:0])
    chosen = known.relation == relation
    return anchors[chosen], items[chosen]


def kinds_of(known: Positives, own: Positives | None) -> dict[str, NDArray[np.bool_]]:
    """{reason: (pairs,) which of `known.pairs()` are excluded for it}; each pair has one reason."""
    anchors, items = known.pairs()
    ignored = np.zeros(len(items), np.bool_) if known.relation is None else known.relation == IGNORE
    itself = np.zeros(len(items), np.bool_) if own is None else ignored & own.contains(anchors, items)
    return {"positive": ~ignored, "anchor": itself, "ignored": ignored & ~itself}


def one_each(known: Positives) -> Ids | None:
    """(n,) the first positive of each anchor, or None if an anchor has none."""
    anchors, items = pairs_of(known, POSITIVE)
    owners, first = np.unique(anchors, return_index=True)
    return items[first] if len(owners) == known.n_anchors else None
