"""Shards: rows of a corpus that are searched without the others, and how their results become one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.positives import Positives
from naysay.search.exact import Found
from naysay.search.vectors import Vectors


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


def merged(one: Found, other: Found) -> Found:
    """The best of two results for the same queries, as one search over both corpora lists them."""
    ids = np.concatenate([one.ids, other.ids], axis=1)
    scores = np.concatenate([one.scores, other.scores], axis=1)
    order = np.lexsort((ids, -scores), axis=1)[:, : one.ids.shape[1]]  # empty slots have the score -inf
    return Found(np.take_along_axis(ids, order, axis=1), np.take_along_axis(scores, order, axis=1))
