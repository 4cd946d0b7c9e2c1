"""A corpus in shards: what a worker does with one of them, and how their results become one.

A worker is told where the file of vectors is, never given its rows. Nothing here depends on what starts the workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid
from naysay.positives import Positives
from naysay.search._scores import METRICS, thread_count
from naysay.search.exact import Exact, Found, Survey, check_score_range, checked_norm, survey, survey_of
from naysay.search.vectors import Vectors, as_vectors, of_array

RESULT_BYTES = 8 << 20  # that a worker returns for a block of queries
MIN_BLOCK = 1024  # queries of a block: each block reads the corpus twice, to survey and to search it
_CANDIDATE_BYTES = 12  # id and score


@final
@dataclass(frozen=True, slots=True)
class Shard:
    """Rows from start to stop of a corpus; one of `count` shards, numbered from 0."""

    number: int
    count: int
    start: int
    stop: int

    def __str__(self) -> str:
        """For sentences, counted from 1."""
        return f"shard {self.number + 1} of {self.count} (rows {self.start:,} to {self.stop - 1:,})"


def shards_of(n: int, count: int) -> list[Shard]:
    """Split n rows in `count` runs of nearly the same length, or in n runs if there are fewer rows."""
    count = max(1, min(n, count))
    edges = [n * place // count for place in range(count + 1)]
    return [Shard(place, count, edges[place], edges[place + 1]) for place in range(count)]


@final
@dataclass(frozen=True, slots=True)
class CorpusFile:
    """A file of vectors, what the driver found in it, and how it is searched."""

    path: Path
    n: int
    width: int
    dtype: str
    metric: str
    engine: str  # of `Exact`: auto, int8, ...; not --engine
    budget: int  # bytes of a worker
    threads: int

    def open(self) -> Vectors:
        """Open the file; raise unless it is the one that the driver has."""
        vectors = as_vectors("corpus", self.path)
        if (vectors.n, vectors.width, str(vectors.dtype)) != (self.n, self.width, self.dtype):
            rule = f"the same file on each node, {self.n:,} x {self.width} {self.dtype}"
            raise_invalid("corpus", rule, f"{vectors.n:,} x {vectors.width} {vectors.dtype} in {str(self.path)!r}")
        return vectors


@final
@dataclass(frozen=True, slots=True, eq=False)
class QueryBlock:
    """Some queries. Arrays only, so that they are sent without a copy."""

    vectors: NDArray[Any]
    known_indptr: NDArray[np.int64]
    known_items: NDArray[Any]  # which are never returned
    depth: int


# ---- what a worker does ---------------------------------------------------------------------------------------------


def part_of(vectors: Vectors, shard: Shard) -> Vectors:
    """The vectors of a shard, numbered from 0; nothing is copied."""
    start, n = shard.start, shard.stop - shard.start

    def read(first: int, last: int) -> NDArray[Any]:
        return vectors.read(start + first, start + min(last, n))

    whole = None if vectors.whole is None else vectors.whole[start : shard.stop]
    return Vectors(n, vectors.width, vectors.dtype, read, lambda ids: vectors.take(ids + start), whole)


def known_in(indptr: NDArray[np.int64], items: NDArray[Any], shard: Shard) -> Positives:
    """The known pairs whose item is in a shard, with its numbers; `indptr` and `items` are those of `Positives`."""
    anchors = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    here = (items >= shard.start) & (items < shard.stop)
    return Positives.from_pairs(
        anchors[here], items[here].astype(np.int64) - shard.start, len(indptr) - 1, shard.stop - shard.start
    )


def survey_shard(file: CorpusFile, shard: Shard) -> Survey:
    """Measure the norms of a shard, and look for rows that have no score."""
    found = survey_of(part_of(file.open(), shard), METRICS[file.metric], file.threads)
    first_bad = found.first
    if first_bad is not None:
        row, rule, got = first_bad
        first_bad = row + shard.start, rule, got
    return Survey(found.largest, None, found.bad, first_bad)


def search_shard(file: CorpusFile, shard: Shard, block: QueryBlock) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The best rows of a shard for a block of queries, by their numbers in the whole corpus, and their scores."""
    part = part_of(file.open(), shard)
    exact = Exact(part, file.metric, engine=file.engine, budget=file.budget, threads=file.threads)
    known = known_in(block.known_indptr, block.known_items, shard)
    found = exact.search(of_array(block.vectors), block.depth, exclude=known)
    return np.where(found.filled, found.ids + shard.start, -1), found.scores


# ---- the whole corpus -----------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A call of a function in a worker."""

    arguments: tuple[Any, ...]
    shard: Shard
    first_query: int = 0  # of its block


class Workers(Protocol):
    """What calls functions in other processes."""

    def share(self, value: Any) -> Any:
        """Return what stands for a value in the arguments of several calls."""

    def run(self, function: Callable[..., Any], calls: Iterable[Call]) -> Iterator[tuple[Call, Any]]:
        """Make all calls, a bounded number at a time, and yield their results as they come."""


def merged(one: Found, other: Found) -> Found:
    """The best of two results for the same queries, as one search over both corpora lists them."""
    ids = np.concatenate([one.ids, other.ids], axis=1)
    scores = np.concatenate([one.scores, other.scores], axis=1)
    order = np.lexsort((ids, -scores), axis=1)[:, : one.ids.shape[1]]  # empty slots have the score -inf
    return Found(np.take_along_axis(ids, order, axis=1), np.take_along_axis(scores, order, axis=1))


@final
class ShardedCorpus:
    """A corpus that workers search, a shard each. `search` gives what `Exact.search` gives, to the byte."""

    def __init__(self, file: CorpusFile, shards: list[Shard], workers: Workers) -> None:
        self._file = file
        self._shards = shards
        self._workers = workers

    def check(self, queries: Vectors) -> None:
        """Raise if a query or a row of the corpus has no score."""
        metric = METRICS[self._file.metric]
        query_norm = survey("queries", queries, metric, thread_count(None)).largest
        calls = [Call((self._file, shard), shard) for shard in self._shards]
        by_shard = {call.shard.number: found for call, found in self._workers.run(survey_shard, calls)}
        corpus_norm = checked_norm("corpus", [by_shard[number] for number in sorted(by_shard)])
        check_score_range(metric, query_norm, corpus_norm)

    def search(
        self,
        queries: Vectors,
        depth: int,
        *,
        exclude: Positives | None = None,
        on_progress: Callable[[float], None] | None = None,
    ) -> Found:
        """Find the `depth` best rows of each query, a block of queries in a shard at a time."""
        if exclude is None:
            exclude = Positives.from_pairs([], [], queries.n, self._file.n)
        found = Found.empty(queries.n, depth)
        for call, (ids, scores) in self._workers.run(search_shard, self._search_calls(queries, depth, exclude)):
            rows = slice(call.first_query, call.first_query + len(ids))
            best = merged(Found(found.ids[rows], found.scores[rows]), Found(ids, scores))
            found.ids[rows] = best.ids
            found.scores[rows] = best.scores
            if on_progress is not None:
                on_progress(len(ids) * (call.shard.stop - call.shard.start) / self._file.n)
        return found

    def _search_calls(self, queries: Vectors, depth: int, exclude: Positives) -> Iterator[Call]:
        """All shards of one block of queries after those of another."""
        queries_at_once = max(MIN_BLOCK, RESULT_BYTES // (_CANDIDATE_BYTES * depth))
        for start in range(0, queries.n, queries_at_once):
            stop = min(start + queries_at_once, queries.n)
            indptr = exclude.indptr[start : stop + 1]
            block = QueryBlock(
                vectors=np.asarray(queries.rows(start, stop)),
                known_indptr=indptr - indptr[0],
                known_items=np.asarray(exclude.indices[indptr[0] : indptr[-1]]),
                depth=depth,
            )
            shared = self._workers.share(block)
            for shard in self._shards:
                yield Call((self._file, shard, shared), shard, start)
