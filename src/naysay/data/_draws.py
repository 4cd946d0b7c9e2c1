"""What the workers of a loader do: rows in, a query with negatives out. It is pickled for a spawned worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_torch
from naysay.checks import raise_invalid
from naysay.data.batch import Batch, in_torch
from naysay.errors import NaysayError
from naysay.kernels.threads import set_threads
from naysay.pools._times import Times
from naysay.positives import POSITIVE, Positives
from naysay.rng import rng_for
from naysay.triples import Triples
from naysay.types import Query, Sampler

Rows = NDArray[np.int64]
# A step, its anchors, its items (None for triples), its times (None if not asked for) and its k.
Order = tuple[int, Rows, Rows | None, NDArray[Any] | None, Any]


@final
@dataclass(frozen=True, slots=True)
class Draws:
    """A dataset for torch: its index is an `Order`, its item is the batch, or the error of the sampler.

    The pairs themselves stay in the main process. An error is returned, not raised: torch would replace its sentence by
    the worker's traceback.
    """

    sampler: Sampler
    seed: int
    rank: int

    def __getitem__(self, order: Order) -> Batch | NaysayError:
        step, anchors, items, times, k = order
        positives, at = None if items is None else to_torch(items), None if times is None else in_torch(times)
        query = Query(to_torch(anchors), positives=positives, step=step, times=at)
        try:
            return Batch(query, self.sampler.sample(query, k, rng=rng_for(self.seed, step, self.rank)))
        except NaysayError as error:
            return error


class Pairs:
    """The pairs to train on, by their numbers: known pairs without ignored ones, or triples. Nothing is copied."""

    def __init__(self, known: Positives | Triples, times: Any) -> None:
        if times is not None and isinstance(known, Triples):
            raise_invalid("times", "left out for Triples", "times")
        self._known = known
        self._times = None if times is None or isinstance(known, Triples) else Times.of(known, times).of_pairs()
        relation = known.relation if isinstance(known, Positives) else None
        self._kept = None if relation is None else np.flatnonzero(relation == POSITIVE)

    def __len__(self) -> int:
        return len(self._known if self._kept is None else self._kept)

    def at(self, rows: Rows) -> tuple[Rows, Rows | None, NDArray[Any] | None]:
        """The anchors, items and times of some pairs; triples (n, 3), None and None."""
        if isinstance(self._known, Triples):
            return self._known.array[rows], None, None
        places = rows if self._kept is None else self._kept[rows]
        anchors = np.searchsorted(self._known.indptr, places, side="right") - 1
        times = None if self._times is None else self._times[places]
        return anchors, self._known.indices[places].astype(np.int64), times


def unchanged(batch: Any) -> Any:
    """The collate function: an item is a whole batch already."""
    return batch


def one_thread(worker: int) -> None:
    """Start a worker with one thread, because the workers together use all cores."""
    set_threads(1)
