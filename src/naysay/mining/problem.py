"""Problem: what is mined, checked once. It knows what can never be a negative, and it searches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, final

import numpy as np

from naysay._rows import offsets
from naysay.arrays import to_numpy
from naysay.checks import (
    MOST_ROWS,
    as_array,
    at_row,
    check_all,
    check_range,
    check_whole,
    raise_invalid,
    shown,
    whole_numbers,
)
from naysay.detectors._suspicion import one_of_each
from naysay.detectors._text_hash import read_texts
from naysay.detectors.bands import Bands
from naysay.detectors.by_reviewer import check_reviewers, read_reviewers
from naysay.detectors.duplicates import Duplicates
from naysay.detectors.posterior import DEPTH
from naysay.detectors.reviewer import Reviewer
from naysay.detectors.thresholds import choose_thresholds
from naysay.mining.candidates import RANDOM_SOURCE, SEARCH, Floats32, Ids, Mask, Reason
from naysay.mining.judge import check_detector, check_judge, is_detector, is_yet_to_fit, judge_of, score_thresholds
from naysay.mining.options import MiningOptions
from naysay.mining.review import Reviewed, read_reviewed
from naysay.mining.take import check_quotas
from naysay.positives import IGNORE, POSITIVE, Positives
from naysay.rng import rng_for
from naysay.search._scores import lowest_of, pair_scores
from naysay.search.exact import Exact, Found
from naysay.search.vectors import Vectors, as_vectors, of_array
from naysay.types import Query, unchecked

# Steps of the seed, so that one random choice does not move another; 5 and 6 are those of reviews.
ONE_POSITIVE, SAMPLED, SELECTED, FILLED, FITTED = range(5)
REVIEW_DEPTH = 62  # the same, of a review: ranks 49 to 60 are the background
FIT_DEPTH = DEPTH + 2  # candidates of an anchor that a posterior needs: one behind the last, and a duplicate may go
SELECT_DEPTH = 100  # candidates that something other than the highest scores chooses from, at least
DEPTH_FACTOR = 4  # candidates for each negative; and by how much a search for short rows is deeper than the last
SPARE = 2  # candidates beyond k where nothing is judged: the anchor's own text, and a copy of it
BLOCK_ROWS = 2560  # anchors that are mined at a time
BLOCK_SLOTS = 1 << 18  # candidates that are judged at a time; fewer anchors if their lists are long
FULL_STRIP = 512  # a multiple of it is searched at a time, if it is more: strips of a search are full then
LISTED_SLOTS = 1 << 25  # candidates that a result lists; longer lists are cut, and what is left out is counted
FALSE_BAND, HARD_BAND = 0.001, 0.05  # shares of all pairs, as `choose_thresholds` has them by default
SAMPLE_PAIRS = 1 << 18  # random pairs that are scored
MEASURED_QUERIES = 500  # on which the recall of an index is measured
TUNED_RECALL = 0.95  # that an index is tuned for, on other queries


class Searcher(Protocol):
    """What finds the nearest: `Exact`, an `Index`, or workers that read the corpus in parts."""

    def search(self, queries: Any, depth: int, *, exclude: Positives | None = None) -> Found:
        """The nearest corpus rows of each query."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Background:
    """Scores of random pairs that are not known."""

    scores: Floats32
    n_positives: int  # known positives among the pairs drawn; they count where shares of all pairs are taken
    whole: bool  # whether these are all pairs

    @property
    def varies(self) -> bool:
        """Whether there is more than one score, so that shares mean something."""
        return len(self.scores) > 0 and bool(self.scores.min() < self.scores.max())

    def bands(self) -> Bands:
        """Bands with 0.1 % of all pairs as false and 5 % as hard. If all scores are equal, all are easy."""
        if not self.varies:
            return Bands(np.inf, np.inf)
        chosen = choose_thresholds(
            self.scores, n_positives=self.n_positives, false_share=FALSE_BAND, hard_share=HARD_BAND
        )
        return Bands(chosen.low, chosen.high)


@final
@dataclass(frozen=True, eq=False)
class Problem:
    """What is mined. All arguments are checked; nothing below checks them again."""

    queries: Vectors
    corpus: Vectors
    options: MiningOptions
    known: Positives  # known pairs of any kind, which are never negatives
    itself: Positives | None  # the anchors in the corpus, by `same_ids`; they are ignored in `known`, too
    counts: Ids | None  # (n,) k of each anchor, or None for "auto"
    largest_k: int  # that an anchor can have
    sources: Mapping[str, Ids]  # {name: (n, m) ids} of other retrievers
    duplicates: Any  # a detector of duplicates, or None
    reviewed: Reviewed | None  # pairs that a person labelled
    searcher: Searcher | None = None  # given once everything is checked
    known_scores: Floats32 = field(default_factory=lambda: np.empty(0, np.float32))  # of the known pairs, in order
    drawn_background: Background | None = None  # random pairs, if they were scored before
    recall: float | None = None  # of an index, as measured
    search_note: str = ""  # what to know about an index
    on_progress: Callable[[float], None] | None = None  # gets how many more anchors are searched, maybe a fraction
    block_slots: int = BLOCK_SLOTS  # candidates that are judged at a time
    reviewers: tuple[Reviewer | None, Reviewer | None] = (None, None)  # the first, and a trusted one
    texts: tuple[Any, Any] | None = None  # of queries and documents, by row, for reviewers
    names: tuple[Any, Any] | None = None  # their ids; the row numbers if there are none
    review_command: str = "ns.mine(..., reviewer=f, review=100)"  # what would settle an estimate, as a user writes it

    @staticmethod
    def of(queries: Any, corpus: Any, positives: Any, k: Any, options: MiningOptions) -> Problem:
        """Check the arguments of `mine`, and score the known pairs. Raises before anything is searched."""
        query_vectors, corpus_vectors = as_vectors("queries", queries), as_vectors("corpus", corpus)
        n, n_items = query_vectors.n, corpus_vectors.n
        itself = read_itself(options.same_ids, n, n_items)
        known = known_pairs(positives, options.ignore, itself, n, n_items)
        sources = read_sources(options.sources, n, n_items)
        if options.reviewed is not None and not is_auto(options):  # a job measures any judge by what was reviewed
            raise_invalid("reviewed", "left out unless the judge is 'auto', without `rescore`", shown(options.judge))
        problem = checked_problem(query_vectors, corpus_vectors, known, itself, k, sources, options)
        if options.reviewer is not None:
            check_reviewers(problem.reviewers, has_texts=problem.texts is not None)
        problem = problem.with_exact_search()
        problem = problem.with_known_scores(problem.score_known())
        return with_index(problem)

    def with_exact_search(self) -> Problem:
        """The same with an exact search, which has checked all vectors."""
        options = self.options
        exact = Exact(
            self.corpus,
            options.metric,
            engine=options.engine,
            budget=options.budget,
            threads=options.threads,
            device=options.device,
        )
        exact.check(self.queries)
        return replace(self, searcher=exact)

    def with_known_scores(self, known_scores: Floats32) -> Problem:
        """The same with the scores of the known pairs. Raises if the judge needs a score that an anchor lacks."""
        problem = replace(self, known_scores=known_scores)
        if problem.detector is not None and not is_yet_to_fit(problem.detector):
            score_thresholds(problem.detector, problem.query(problem.anchors))
        return problem

    # ---- what is known ----------------------------------------------------------------------------------------------

    @property
    def n_items(self) -> int:
        """Rows of the corpus."""
        return self.corpus.n

    @cached_property
    def anchors(self) -> Ids:
        """(n,) all anchors."""
        return np.arange(self.queries.n)

    @cached_property
    def reasons_of_known(self) -> dict[Reason, Mask]:
        """{reason: (pairs,) which known pairs are left out for it}; each pair has one reason."""
        anchors, items = self.known.pairs()
        ignored = np.zeros(len(items), np.bool_) if self.known.relation is None else self.known.relation == IGNORE
        itself = np.zeros(len(items), np.bool_)
        if self.itself is not None:
            itself = ignored & self.itself.contains(anchors, items)
        return {Reason.POSITIVE: ~ignored, Reason.ANCHOR: itself, Reason.IGNORED: ignored & ~itself}

    @cached_property
    def positive_pairs(self) -> tuple[Ids, Ids]:
        """(anchors, items) of the known positives, in order."""
        return pairs_of(self.known, POSITIVE)

    @cached_property
    def positive_scores(self) -> Floats32:
        """(n,) the lowest score of each anchor's known positives, NaN without one."""
        is_positive = self.reasons_of_known[Reason.POSITIVE]
        return lowest_of(self.positive_pairs[0], self.known_scores[is_positive], self.queries.n)

    @cached_property
    def one_positive_each(self) -> Ids:
        """Places in `known.pairs()` of one positive of each anchor that has some, drawn by the seed."""
        positive = np.flatnonzero(self.reasons_of_known[Reason.POSITIVE])
        if not len(positive):
            return positive
        rng = rng_for(self.options.seed, ONE_POSITIVE)
        return positive[np.sort(one_of_each(self.positive_pairs[0], rng))]

    def known_of(self, anchors: Ids) -> tuple[Positives, Ids]:
        """The known pairs of some anchors, which are numbered from 0, and the places of these pairs among all."""
        return known_rows(self.known, anchors), known_places(self.known, anchors)

    def counts_of(self, anchors: Ids) -> Ids:
        """(A,) k of some anchors; the largest there can be where it is "auto"."""
        return np.full(len(anchors), self.largest_k) if self.counts is None else self.counts[anchors]

    # ---- scores -----------------------------------------------------------------------------------------------------

    def score(self, anchors: Ids, items: Ids) -> Floats32:
        """(p,) the scores of pairs, as the search gives them."""
        return pair_scores(self.queries, self.corpus, anchors, items, self.options.metric)

    def score_known(self) -> Floats32:
        """The scores of all known pairs, in the order of `known.pairs()`."""
        return self.score(*self.known.pairs())

    @cached_property
    def background(self) -> Background:
        """The scores of 2^18 random pairs, drawn by the seed, or of all pairs if there are no more."""
        if self.drawn_background is not None:
            return self.drawn_background
        total = self.queries.n * self.n_items
        whole = total <= SAMPLE_PAIRS
        drawn = np.arange(total)
        if not whole:
            drawn = rng_for(self.options.seed, SAMPLED).integers(0, total, SAMPLE_PAIRS)
        anchors, items = np.divmod(drawn, max(1, self.n_items))
        free = ~self.known.contains(anchors, items, relation="any")
        positives = int(np.count_nonzero(self.known.contains(anchors, items)))
        return Background(self.score(anchors[free], items[free]), positives, whole)

    @cached_property
    def lowest_score(self) -> float | None:
        """The lowest score of a negative, or None. Where k is "auto", there always is one."""
        if self.options.min_score is not None or self.counts is not None:
            return self.options.min_score
        return float(self.detector.low if isinstance(self.detector, Bands) else self.background.bands().low)

    # ---- the judge --------------------------------------------------------------------------------------------------

    @cached_property
    def detector(self) -> Any:
        """The judge as a detector; "auto" and a `Calibrated` without scores are yet to be fitted."""
        return judge_of(self.options.judge, self.positive_scores)

    def query(self, anchors: Ids) -> Query:
        """What a detector is given for some anchors."""
        return self._whole_query if len(anchors) == self.queries.n else self._query(anchors)

    @cached_property
    def _whole_query(self) -> Query:
        return self._query(self.anchors)

    def _query(self, anchors: Ids) -> Query:
        positives = None if self._first_positives is None else self._first_positives[anchors]
        reads_vectors = self.duplicates is not None or is_detector(self.options.judge)
        queries = self.queries_of(anchors)
        vectors = queries.rows(0, queries.n) if reads_vectors else None
        return unchecked(Query, anchors=anchors, positives=positives, vectors=vectors)

    @cached_property
    def _first_positives(self) -> Ids | None:
        """(n,) the first positive of each anchor, or None if an anchor has none."""
        anchors, items = self.positive_pairs
        owners, first = np.unique(anchors, return_index=True)
        return items[first] if len(owners) == self.known.n_anchors else None

    # ---- the search -------------------------------------------------------------------------------------------------

    @property
    def deepest(self) -> int:
        """How many candidates of an anchor may be searched at most."""
        last = None if self.options.rank_range is None else self.options.rank_range[1]
        return min(self.options.depth or self.n_items, last or self.n_items, self.n_items)

    @property
    def first_depth(self) -> int:
        """How many candidates of each anchor are searched first."""
        options = self.options
        if options.depth is not None:
            return self.deepest
        chooses = options.select != "top" or options.rescore is not None or bool(self.sources)
        if chooses:
            depth = max(DEPTH_FACTOR * self.largest_k, SELECT_DEPTH)
        elif options.judge is not None or options.max_per_item is not None:
            depth = max(DEPTH_FACTOR * self.largest_k, self.judged_depth)
        else:
            depth = max(1, self.largest_k) + SPARE
        skipped = 0 if options.rank_range is None else options.rank_range[0] - 1
        return min(skipped + depth, self.deepest)

    @property
    def judged_depth(self) -> int:
        """How many candidates of each anchor the judge of "auto" needs."""
        return FIT_DEPTH if self.options.reviewer is None else REVIEW_DEPTH

    @property
    def may_deepen(self) -> bool:
        """Whether anchors that are short are searched deeper."""
        return self.options.depth is None and self.options.rescore is None

    @property
    def advised_depth(self) -> int | None:
        """How deep short anchors were searched, if a deeper search may help them; None if all was tried."""
        if self.may_deepen and self.options.max_per_item is None:
            return None
        return self.first_depth

    @property
    def listed_width(self) -> int:
        """How many candidates of each anchor a result lists."""
        width: int = self.first_depth + sum(ids.shape[1] for ids in self.sources.values())
        if self.options.depth is not None or self.options.max_per_item is not None:
            return width
        return min(width, max(self.largest_k + SPARE, LISTED_SLOTS // max(1, self.queries.n)))

    def blocks(self, anchors: Ids, depth: int) -> Iterator[Ids]:
        """Anchors, as many at a time as lists of that depth allow; nothing depends on how many. At least one block."""
        size = min(BLOCK_ROWS, max(1, self.block_slots // depth))
        size = size // FULL_STRIP * FULL_STRIP or size
        for start in range(0, max(1, len(anchors)), size):
            yield anchors[start : start + size]

    def search(self, anchors: Ids, depth: int, *, silent: bool = False) -> Found:
        """The nearest corpus rows of some anchors, known pairs left out; `silent`: without progress."""
        if self.searcher is None:
            raise ValueError
        options: dict[str, Any] = {"exclude": known_rows(self.known, anchors)}
        if self.on_progress is not None and not silent:
            options["on_progress"] = self.on_progress
        return self.searcher.search(self.queries_of(anchors), depth, **options)

    def release(self) -> None:
        """Free what searches keep for the next one."""
        if isinstance(self.searcher, Exact):
            self.searcher.release()

    def queries_of(self, anchors: Ids) -> Vectors:
        """The vectors of some anchors."""
        if len(anchors) == self.queries.n:
            return self.queries
        if len(anchors) and anchors[-1] - anchors[0] == len(anchors) - 1:
            return of_array(self.queries.rows(int(anchors[0]), int(anchors[-1]) + 1))
        return of_array(self.queries.take(anchors))


def is_auto(options: MiningOptions) -> bool:
    """Whether the judge is a posterior, if one can be fitted."""
    return isinstance(options.judge, str) and options.judge == "auto" and options.rescore is None


def with_index(problem: Problem, path: Path | None = None) -> Problem:
    """Return the problem with an approximate index, if its options ask for one.

    `path` is where the index is kept: opened if it exists, else built and saved, so that a resumed job has the same.
    """
    options = problem.options
    if options.approximate is None:
        return problem
    from naysay.search.index import Index  # here, because it loads faiss

    threads = options.threads
    if path is not None and path.exists():
        index = Index.open(path, problem.corpus, threads=threads)
    else:
        index = Index.build(
            problem.corpus, metric=options.metric, kind=options.approximate, seed=options.seed, threads=threads
        )
        wanted = max(options.min_recall, TUNED_RECALL)
        depth = problem.first_depth
        index.tune(problem.queries, depth, min_recall=wanted, sample=MEASURED_QUERIES, seed=options.seed + 1)
        if path is not None:
            index.save(path)
    recall = index.measure(problem.queries, problem.first_depth, sample=MEASURED_QUERIES, seed=options.seed)
    if recall.value < options.min_recall:
        advice = "Leave `approximate` out for an exact search, or pass a lower `min_recall`."
        rule = f"an index with a recall of at least {options.min_recall:.1%}"
        raise_invalid("approximate", rule, f"{recall.value:.1%} on {recall.n:,} queries", advice)
    note = (
        f"The search was approximate: recall {recall.value:.1%} (95 % CI {recall.low:.1%} to {recall.high:.1%}, "
        f"{recall.n:,} queries)."
    )
    return replace(problem, searcher=index, recall=recall.value, search_note=note, on_progress=None)


# ---- checks ---------------------------------------------------------------------------------------------------------


def checked_problem(
    queries: Vectors,
    corpus: Vectors,
    known: Positives,
    itself: Positives | None,
    k: Any,
    sources: Mapping[str, Ids],
    options: MiningOptions,
) -> Problem:
    """Check the arguments of `mine` against each other, all but the values of the vectors. It cannot search yet."""
    if queries.width != corpus.width:
        raise_invalid("queries", f"of width {corpus.width}, like `corpus`", queries.width)
    if corpus.n == 0:
        raise_invalid("corpus", "of at least one vector", "none")
    counts = None if isinstance(k, str) and k == "auto" else _read_counts(k, queries.n)
    check_reachable(options, corpus.n)
    labelled = len(np.unique(pairs_of(known, POSITIVE)[0]))
    check_judge(
        judge_of(options.judge, np.ones(max(1, queries.n), np.float32)),
        labelled,
        auto_k=counts is None,
        duplicates=options.duplicates,
        rescored=options.rescore is not None,
    )
    _check_selection(options, counts, (SEARCH, *sources), corpus.n)
    if options.rescore_budget is not None and options.rescore_budget < labelled:
        rule = f"at least {labelled}, one positive of each anchor"
        raise_invalid("rescore_budget", rule, options.rescore_budget)
    largest_k = min(options.max_k, corpus.n)
    if counts is not None:
        largest_k = int(k if np.ndim(k) == 0 else counts.max(initial=0))
    return Problem(
        queries=queries,
        corpus=corpus,
        options=options,
        known=known,
        itself=itself,
        counts=counts,
        largest_k=largest_k,
        sources=sources,
        duplicates=_duplicates(options.duplicates, known, itself, shared=options.same_ids is True),
        reviewed=None if options.reviewed is None else read_reviewed(options.reviewed, queries.n, corpus.n),
        reviewers=(None, None) if options.reviewer is None else read_reviewers(options.reviewer),
        texts=_read_texts(options, queries.n, corpus.n),
    )


def _read_texts(options: MiningOptions, n_queries: int, n_items: int) -> tuple[Any, Any] | None:
    """(query texts, corpus texts), or None."""
    if options.texts is None:
        return None
    if not isinstance(options.texts, tuple | list) or len(options.texts) != 2:
        raise_invalid("texts", "(query texts, corpus texts)", shown(options.texts))
    queries, documents = options.texts
    for what, texts, size in (("query", queries, n_queries), ("corpus", documents, n_items)):
        if isinstance(texts, str) or len(texts) != size:
            raise_invalid("texts", f"{size} {what} texts", shown(texts) if isinstance(texts, str) else len(texts))
    return queries, documents


def _read_counts(k: Any, n_anchors: int) -> Ids:
    """(n,) from one number for all, or one for each."""
    rule = f"a whole number, or one for each of the {n_anchors} anchors, or 'auto'"
    given = as_array("k", to_numpy(k))
    if given.ndim == 0:
        if given.dtype.kind not in "iu":
            raise_invalid("k", rule, shown(k))
        return np.full(n_anchors, check_whole("k", given.item(), 0, MOST_ROWS))
    counts = whole_numbers("k", given).astype(np.int64)
    if len(counts) != n_anchors:
        raise_invalid("k", rule, f"{len(counts)} numbers")
    check_all("k", counts, (counts >= 0) & (counts <= MOST_ROWS), f"from 0 to {MOST_ROWS:,}")
    return counts


def check_corpus_size(k: Any, options: MiningOptions, n_items: int) -> None:
    """Raise if no anchor could have what a job asks for, because the corpus is too small.

    In memory, anchors that are short follow `on_short`. A job of hours with a `k` that no anchor can have is a mistake.
    """
    largest = 0 if isinstance(k, str) else int(np.max(to_numpy(k), initial=0))
    if largest > n_items:
        raise_invalid("k", f"at most {n_items:,}, the number of documents", f"{largest:,}")
    check_reachable(options, n_items)


def check_reachable(options: MiningOptions, n_items: int) -> None:
    """Raise if no candidate can have the ranks or the scores that are asked for."""
    if options.rank_range is not None and options.rank_range[0] > n_items:
        rule = f"a range that begins at rank {n_items:,} or before, the number of documents"
        raise_invalid("rank_range", rule, shown(options.rank_range))
    if options.metric == "cosine" and options.min_score is not None and options.min_score > 1:
        raise_invalid("min_score", "at most 1, the largest cosine", options.min_score)


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


def read_sources(sources: Any, n: int, n_items: int) -> dict[str, Ids]:
    """{name: (n, m) ids} of other retrievers."""
    if sources is None:
        return {}
    if not isinstance(sources, Mapping) or not all(isinstance(name, str) for name in sources):
        raise_invalid("sources", "a dictionary {name: ids}", shown(sources))
    lists = {}
    for name, given in sources.items():
        if name in (SEARCH, RANDOM_SOURCE):
            raise_invalid("sources", "named other than 'search' and 'random'", repr(name))
        ids = whole_numbers("sources", to_numpy(getattr(given, "ids", given)), "(n, m)").astype(np.int64)
        if len(ids) != n:
            raise_invalid("sources", f"of {n} rows, like queries", f"{len(ids)} of {name!r}")
        check_range("sources", ids, n_items, "corpus rows", least=-1)
        lists[name] = ids
    return lists


def _duplicates(given: Any, known: Positives, itself: Positives | None, *, shared: bool) -> Any:
    """A detector of duplicates, or None: as given, or made from the texts of the corpus, and of the queries."""
    if given is None:
        return None
    if hasattr(given, "suspicion"):
        check_detector("duplicates", given)
        return given
    texts, query_texts = given, None
    if isinstance(given, tuple) and len(given) == 2 and not any(isinstance(part, str | bytes) for part in given):
        texts, query_texts = given
    if isinstance(texts, str | bytes) or not hasattr(texts, "__len__") or getattr(texts, "shape", None) == ():
        rule = "a detector, the texts of the corpus, or (corpus texts, query texts)"
        raise_invalid("duplicates", rule, shown(given))
    for what, part, size in (("corpus", texts, known.n_items), ("query", query_texts, known.n_anchors)):
        if part is not None and len(part) != size:
            raise_invalid("duplicates", f"{size} {what} texts", len(part))
    positives = Positives.from_pairs(*pairs_of(known, POSITIVE), known.n_anchors, known.n_items)
    if query_texts is None and itself is not None and not shared:  # an anchor that is an item has its text
        texts = read_texts("duplicates", texts)
        item_of = dict(zip(*(part.tolist() for part in itself.pairs()), strict=True))
        query_texts = [texts[item_of[anchor]] if anchor in item_of else "" for anchor in range(known.n_anchors)]
    return Duplicates(item_texts=texts, anchor_texts=query_texts, positives=positives, shared_ids=shared)


# ---- known pairs ----------------------------------------------------------------------------------------------------


def pairs_of(known: Positives, relation: int) -> tuple[Ids, Ids]:
    """(anchors, items) of the pairs of one relation, in order."""
    anchors, items = known.pairs()
    if known.relation is None:
        return (anchors, items) if relation == POSITIVE else (anchors[:0], items[:0])
    chosen = known.relation == relation
    return anchors[chosen], items[chosen]


def known_places(known: Positives, anchors: Ids) -> Ids:
    """The places in `known.pairs()` of the pairs of some anchors."""
    counts = np.diff(known.indptr)[anchors]
    starts = known.indptr[anchors] - offsets(counts)[:-1]
    return np.repeat(starts, counts) + np.arange(counts.sum())


def known_rows(known: Positives, anchors: Ids) -> Positives:
    """All that is known of some anchors, which are numbered from 0."""
    if len(anchors) == known.n_anchors:
        return known
    places = known_places(known, anchors)
    relation = None if known.relation is None or not len(places) else known.relation[places]
    indptr = offsets(np.diff(known.indptr)[anchors])
    return Positives(indptr, known.indices[places], known.n_items, relation=relation)


def known_pairs(positives: Any, ignore: Any, itself: Positives | None, n_anchors: int, n_items: int) -> Positives:
    """All that can never be a negative: positives, what to ignore, and each anchor itself.

    A pair that is a positive and ignored is a positive. Pairs of `ignore` are ignored whatever their relation there.
    """
    known = read_known("positives", positives, n_anchors, n_items)
    if ignore is not None:
        known = known.with_ignored(*read_known("ignore", ignore, n_anchors, n_items).pairs())
    return known if itself is None else known.with_ignored(*itself.pairs())


def read_known(parameter: str, given: Any, n_anchors: int, n_items: int) -> Positives:
    """Known pairs as `Positives` of n_anchors x n_items.

    Given as Positives; (anchors, items), two arrays of one length; (n_anchors,) the one item of each anchor, -1 none;
    or None.
    """
    if isinstance(given, Positives):
        if (given.n_anchors, given.n_items) == (n_anchors, n_items):
            return given
        sizes = (("anchors", "queries", given.n_anchors, n_anchors), ("items", "corpus", given.n_items, n_items))
        for what, like, size, limit in sizes:
            if size > limit:
                raise_invalid(parameter, f"of at most {limit} {what}, like {like}", size)
        return given.union(_no_pairs(n_anchors, n_items))
    if given is None:
        return _no_pairs(n_anchors, n_items)
    if _are_two_arrays(given):
        anchors, items = (whole_numbers(parameter, to_numpy(part)) for part in given)
        if len(anchors) != len(items):
            raise_invalid(parameter, "two arrays of one length", f"{len(anchors)} anchors and {len(items)} items")
        check_range(parameter, anchors, n_anchors, "queries")
        check_range(parameter, items, n_items, "corpus rows")
        return Positives.from_pairs(anchors, items, n_anchors, n_items)
    rule = f"a Positives, two arrays (anchors, items), or ({n_anchors},) the one of each query"
    return _one_item_each(parameter, rule, given, n_anchors, n_items)


def _no_pairs(n_anchors: int, n_items: int) -> Positives:
    return Positives(np.zeros(n_anchors + 1, np.int64), np.empty(0, np.int32), n_items)


def read_itself(given: Any, n_anchors: int, n_items: int) -> Positives | None:
    """`same_ids` as the pairs (query, corpus row) that are one and the same; None if there are none.

    Given as True: query i is corpus row i; (n_anchors,) corpus rows, -1 none; or (query ids, corpus ids).
    """
    if given is None or given is False:
        return None
    if given is True:
        if n_anchors != n_items:
            advice = "Pass the corpus row of each query, -1 for none, or (query ids, corpus ids)."
            rule = f"left out unless queries are the {n_items} corpus rows"
            raise_invalid("same_ids", rule, f"{n_anchors} queries", advice)
        given = np.arange(n_anchors)
    elif _are_two_arrays(given):
        given = _rows_of_ids(_as_list(given[0]), _as_list(given[1]), n_anchors, n_items)
    rule = f"True, ({n_anchors},) the corpus row of each query, or (query ids, corpus ids)"
    return _one_item_each("same_ids", rule, given, n_anchors, n_items)


def _are_two_arrays(given: Any) -> bool:
    return isinstance(given, tuple | list) and len(given) == 2 and all(np.ndim(to_numpy(part)) == 1 for part in given)


def _one_item_each(parameter: str, rule: str, given: Any, n_anchors: int, n_items: int) -> Positives:
    """Pairs from (n_anchors,) the item of each anchor, -1 for none."""
    items = as_array(parameter, to_numpy(given))
    if items.shape != (n_anchors,) or (items.size and items.dtype.kind not in "iu"):
        raise_invalid(parameter, rule, f"shape {items.shape} {items.dtype}" if items.ndim else shown(given))
    items = items.astype(np.int64)
    check_range(parameter, items, n_items, "corpus rows", least=-1)
    anchors = np.flatnonzero(items >= 0)
    return Positives.from_pairs(anchors, items[anchors], n_anchors, n_items)


def _as_list(part: Any) -> list[Any]:
    names = list(next((getattr(part, way)() for way in ("to_pylist", "tolist") if hasattr(part, way)), part))
    odd = [row for row, name in enumerate(names) if not isinstance(name, str | int)]
    if odd:
        got = at_row(shown(names[odd[0]]), odd[0], len(odd))
        raise_invalid("same_ids", "ids that are strings or whole numbers", got)
    return names


def _rows_of_ids(queries: list[Any], corpus: list[Any], n_anchors: int, n_items: int) -> Ids:
    """(n_anchors,) the corpus row with the id of each query, -1 without one."""
    for what, names, size in (("query", queries, n_anchors), ("corpus", corpus, n_items)):
        if len(names) != size:
            raise_invalid("same_ids", f"{size} {what} ids", len(names))
    row_of = {name: row for row, name in enumerate(corpus)}
    if len(row_of) < len(corpus):
        repeat = next(name for row, name in enumerate(corpus) if row_of[name] != row)
        raise_invalid("same_ids", "different corpus ids", f"{shown(repeat)} twice")
    return np.array([row_of.get(name, -1) for name in queries], np.int64)
