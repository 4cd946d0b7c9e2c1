"""Passes over a corpus by a pool of workers: what is sent to each, and how their results become one.

The pool is any object that calls the workers: `naysay.jobs._ray.Pool`, or one that runs them here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np

from naysay.jobs._worker import Block
from naysay.positives import Positives
from naysay.search._scores import METRICS, thread_count
from naysay.search._shards import Shard, merged
from naysay.search._survey import check_measured, check_score_range, survey
from naysay.search.exact import Found
from naysay.search.vectors import Vectors

_RESULT, _FEWEST = 1 << 23, 1024  # bytes that a shard returns for a block of queries, and the fewest queries of one
_CANDIDATE = 12  # bytes: id and score


@final
@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A call of a worker."""

    name: str  # what it is about, for sentences
    place: int  # the same worker gets the same places, as long as it lives
    arguments: tuple[Any, ...]
    first: int = 0  # the first row of its block
    tries: int = 0  # how often it failed


class Workers(Protocol):
    """A pool of workers."""

    def share(self, value: Any) -> Any:
        """Return what stands for a value in the arguments of several calls; it is sent to each node once."""

    def each(self, method: str, calls: Iterable[Call]) -> Iterator[tuple[Call, Any]]:
        """Make all calls, a bounded number at a time, and yield their results as they come."""

    def about(self) -> list[dict[str, Any]]:
        """What each worker tells about itself."""


def rows_of_block(depth: int) -> int:
    """How many queries are sent at a time."""
    return max(_FEWEST, _RESULT // (_CANDIDATE * depth))


@final
class Sharded:
    """A corpus in shards, searched by workers: the searcher of a problem."""

    def __init__(self, pool: Workers, shards: list[Shard], metric: str = "cosine", engine: str = "auto") -> None:
        self.pool, self.shards, self.metric, self.engine = pool, shards, metric, engine
        self._norms: tuple[float, float] | None = None  # the largest of queries and corpus

    def check(self, queries: Vectors) -> None:
        """Check all vectors; searches are for some of these queries."""
        metric = METRICS[self.metric]
        largest = survey("queries", queries, metric, thread_count(None)).largest, self.largest_norm(self.metric)
        check_score_range(metric, *largest)
        self._norms = largest

    def largest_norm(self, metric: str) -> float:
        """The largest norm of the corpus; raises if a vector has no score."""
        found = {call.place: result for call, result in self.pool.each("measured", self._calls(metric))}
        return check_measured("corpus", [found[place] for place in sorted(found)])

    def search(
        self,
        queries: Vectors,
        depth: int,
        *,
        exclude: Positives | None = None,
        on_progress: Callable[[float], None] | None = None,
    ) -> Found:
        """Search for all queries, a block of them in a shard at a time."""
        found = Found.empty(queries.n, depth)
        size, total = rows_of_block(depth), self.shards[-1].stop
        for call, result in self.pool.each("search", self._searches(queries, depth, exclude, size)):
            part, shard = slice(call.first, call.first + size), call.arguments[0]
            best = merged(Found(found.ids[part], found.scores[part]), Found(result.ids, result.scores))
            found.ids[part], found.scores[part] = best.ids, best.scores
            if on_progress is not None:
                on_progress(len(best) * (shard.stop - shard.start) / total)
        return found

    def _searches(self, queries: Vectors, depth: int, known: Positives | None, size: int) -> Iterator[Call]:
        """The calls of a search, the shards of one block after those of another."""
        if self._norms is None or known is None:
            return
        for start in range(0, queries.n, size):
            stop = min(start + size, queries.n)
            indptr = known.indptr[start : stop + 1]
            block = Block(
                queries=np.asarray(queries.rows(start, stop)),
                known=(indptr - indptr[0], np.asarray(known.indices[indptr[0] : indptr[-1]])),
                depth=depth,
                metric=self.metric,
                engine=self.engine,
                norms=self._norms,
            )
            for call in self._calls(self.pool.share(block)):
                yield Call(call.name, call.place, call.arguments, start)

    def _calls(self, *arguments: Any) -> Iterator[Call]:
        """The same call for each shard."""
        return (Call(str(shard), shard.number, (shard, *arguments)) for shard in self.shards)


def encoded_by(pool: Workers, encode: Any, blocks: Iterable[list[str]]) -> Iterator[Any]:
    """Vectors of blocks of texts in order, by workers: the `each` of `encode_texts`, whose options `encode` carries."""
    calls = (
        Call(f"block {place + 1} of texts", place, (block, encode.keywords), place)
        for place, block in enumerate(blocks)
    )
    early, wanted = dict[int, Any](), 0
    for call, result in pool.each("encode", calls):
        early[call.first] = result
        while wanted in early:
            yield early.pop(wanted)
            wanted += 1
