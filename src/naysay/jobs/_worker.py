"""What a worker process does for a job: it reads shards of the corpus from their file, and searches them.

Nothing here depends on the engine that starts the processes. A worker is told where the file is, never given its rows.
"""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass
from pathlib import Path
from platform import node
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid
from naysay.encode.model import load_model
from naysay.kernels.threads import set_threads
from naysay.search._scores import METRICS
from naysay.search._shards import Shard, known_in, part_of
from naysay.search._survey import Measured, Survey, measured
from naysay.search.exact import SearchOptions
from naysay.search.vectors import Vectors, as_vectors
from naysay.text import versions

SAME = ("naysay", "numpy")  # packages whose versions decide the bytes of a result
ASK = "ask"  # the calls that a worker answers in a thread of their own


@final
@dataclass(frozen=True, slots=True)
class Corpus:
    """A file of vectors, and what the driver found in it."""

    path: Path
    n: int
    width: int
    dtype: str

    def open(self) -> Vectors:
        """Open the file; raise unless it is the one that the driver has."""
        found = as_vectors("corpus", self.path)
        if (found.n, found.width, str(found.dtype)) != (self.n, self.width, self.dtype):
            rule = f"the same file on each node, {self.n:,} x {self.width} {self.dtype}"
            raise_invalid("corpus", rule, f"{found.n:,} x {found.width} {found.dtype} in {str(self.path)!r}")
        return found


@final
@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Some queries, and all that a search for them depends on. Arrays only, so that it is sent without a copy."""

    queries: NDArray[Any]
    known: tuple[NDArray[np.int64], NDArray[Any]]  # (indptr, items) of what is left out
    depth: int
    metric: str
    engine: str
    norms: tuple[float, float]  # the largest of queries and corpus


@final
@dataclass(frozen=True, slots=True, eq=False)
class Partial:
    """What a shard has for a block: ids of the whole corpus, with their scores."""

    ids: NDArray[np.int64]
    scores: NDArray[np.float32]


def about() -> dict[str, Any]:
    """Which process this is, what it has installed, and its peak of memory in bytes."""
    peak = importlib.import_module("resource").getrusage(0).ru_maxrss * 1024 if os.name == "posix" else 0
    return {"pid": os.getpid(), "node": node(), "versions": versions(*SAME), "peak": peak}


about.__dict__["__ray_concurrency_group__"] = ASK  # Ray reads this where a worker starts: it answers while it works


class ShardWorker:
    """A process that holds the corpus open and answers for one shard at a time."""

    def __init__(self, corpus: Corpus, threads: int, budget: int) -> None:
        self._corpus, self._threads, self._budget = corpus, threads, budget
        self._opened: Vectors | None = None
        set_threads(threads)

    about = staticmethod(about)

    def measured(self, shard: Shard, metric: str) -> Measured:
        """Check the vectors of a shard."""
        found = measured(self._part(shard), METRICS[metric], self._threads)
        first = None if found.first is None else (found.first[0] + shard.start, *found.first[1:])
        return Measured(Survey(found.survey.largest, None), found.bad, first)

    def search(self, shard: Shard, block: Block) -> Partial:
        """Search a shard for a block of queries."""
        surveys = Survey(block.norms[0], None), Survey(block.norms[1], None)
        limits = block.engine, self._budget, self._threads, None, None, surveys
        how = SearchOptions(block.metric, known_in(*block.known, shard), *limits)
        found = how.run(block.queries, self._part(shard), block.depth)[0]
        return Partial(np.where(found.ids >= 0, found.ids + shard.start, -1), found.scores)

    def _part(self, shard: Shard) -> Vectors:
        if self._opened is None:
            self._opened = self._corpus.open()
        return part_of(self._opened, shard)


class EncodingWorker:
    """A process that holds a model, and encodes a block of texts at a time."""

    def __init__(self, model: Any, device: str | None) -> None:
        self._given, self._device = model, device
        self._model: Any = None

    about = staticmethod(about)

    def encode(self, texts: list[str], options: dict[str, Any]) -> Any:
        """Encode texts; the model is loaded when the first are."""
        if self._model is None:
            named = isinstance(self._given, str | Path)
            self._model = load_model(self._given, device=self._device) if named else self._given
        return self._model.encode(texts, **options)
