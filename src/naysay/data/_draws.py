"""What the workers of a loader do: rows in, a query with negatives out. It is pickled for a spawned worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_torch
from naysay.data.batch import Batch
from naysay.errors import NaysayError
from naysay.kernels.threads import set_threads
from naysay.positives import POSITIVE, Positives
from naysay.rng import rng_for
from naysay.triples import Triples
from naysay.types import Query, Sampler

Rows = NDArray[np.int64]
Order = tuple[int, Rows, Any]  # a step, its rows and its k


@final
@dataclass(frozen=True, slots=True)
class Draws:
    """A dataset for torch: its index is (step, rows, k), its item is the batch, or the error of the sampler.

    An error is returned, not raised: torch would replace its sentence by the worker's traceback.
    """

    anchors: NDArray[np.int64]  # (n,), or (n, 3) for triples
    items: NDArray[np.int64] | None  # (n,); None for triples
    sampler: Sampler
    seed: int
    rank: int

    def __getitem__(self, order: Order) -> Batch | NaysayError:
        step, rows, k = order
        items = None if self.items is None else to_torch(self.items[rows])
        query = Query(to_torch(self.anchors[rows]), positives=items, step=step)
        try:
            return Batch(query, self.sampler.sample(query, k, rng=rng_for(self.seed, step, self.rank)))
        except NaysayError as error:
            return error


def pairs_of(positives: Positives | Triples) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """The pairs to train on, without ignored ones; or the triples (n, 3), and None."""
    if isinstance(positives, Triples):
        return positives.array, None
    anchors, items = positives.pairs()
    if positives.relation is None:
        return anchors, items
    kept = positives.relation == POSITIVE
    return anchors[kept], items[kept]


def unchanged(batch: Any) -> Any:
    """The collate function: an item is a whole batch already."""
    return batch


def one_thread(worker: int) -> None:
    """Start a worker with one thread, because the workers together use all cores."""
    set_threads(1)
