"""A pool or sampler under test: how it is called, with which queries, and how its answers are compared."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.rng import rng_for
from naysay.testing._batches import Batches
from naysay.types import Negatives, Query

MANY = 64
LARGE = 4096  # rows enough for a call to be split over threads
_FIELDS = tuple(f.name for f in fields(Negatives) if f.name not in ("source_names", "dropped"))


@dataclass(frozen=True)
class Trial:
    """A part under test.

    Args:
        call: Its method, (query, slots, *, rng) -> Negatives.
        slots: How many slots it is asked for.
        most: How many it may be asked for: more than there are candidates, where that is affordable.
        saved: Its state before the test, to start every answer from; None if it keeps none.
    """

    part: Any
    call: Callable[..., Negatives]
    batches: Batches
    slots: int
    most: int
    seed: int
    saved: Any = None

    def ask(self, query: Query, slots: Any = None, *, step: int = 0) -> Negatives:
        """The answer from the first state, with the generator of (seed, step)."""
        self.rewind()
        answer = self.call(query, self.slots if slots is None else slots, rng=rng_for(self.seed, step))
        if not isinstance(answer, Negatives):
            message = f"the answer must be Negatives, not {type(answer).__name__}"
            raise TypeError(message)
        return answer

    def rewind(self) -> None:
        """Put the part back into the state it had before the test."""
        if self.saved is not None:
            self.part.restore(copy.deepcopy(self.saved))

    def questions(self) -> Iterator[tuple[Query, int]]:
        """Some rows, many rows, and the rows that run out, with the slots to ask for."""
        yield self.batches.mixed(MANY), self.slots
        yield self.batches.mixed(LARGE), self.slots
        yield self.batches.emptiest(), self.most

    def answers(self) -> Iterator[tuple[Query, Negatives]]:
        """The questions with their answers, in NumPy."""
        for query, slots in self.questions():
            yield query, self.ask(query, slots).numpy()

    def uneven(self) -> NDArray[np.int64]:
        """(MANY,) slots for each row, from 0 to `slots`."""
        return np.arange(MANY) % (self.slots + 1)


def differs(one: Negatives, other: Negatives) -> str | None:
    """The first field in which two answers differ, or None."""
    names = (name for name in _FIELDS if not equal(getattr(one, name), getattr(other, name)))
    return next(names, None if dict(one.dropped) == dict(other.dropped) else "dropped")


def equal(one: Any, other: Any) -> bool:
    """Whether two arrays, NumPy or torch, or two Nones are the same; NaN equals NaN."""
    one, other = to_numpy(one), to_numpy(other)
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other, equal_nan=np.asarray(one).dtype.kind == "f")


def place_keys(drawn: Negatives) -> NDArray[np.int64]:
    """(B, K) one number for each (side, id); -1 where the slot is empty."""
    ids = np.asarray(to_numpy(drawn.ids))
    if drawn.side is None:
        return ids
    return np.where(ids < 0, -1, ids * 3 + to_numpy(drawn.side))
