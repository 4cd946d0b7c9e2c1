"""Negatives that come again and again: a few documents that many anchors are taught to avoid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

_TOP = 0.01  # of the documents
_SHOWN = 10


@final
@dataclass(frozen=True, slots=True)
class Repeats:
    """How evenly negatives are spread over documents.

    Args:
        documents: How many there are to draw from, and `used` how many of them are negatives of some anchor.
        top_share: The share of all slots that the most common 1 % of the documents take (one, of fewer than 100).
        by_chance: What that share would be if each slot had been drawn at random.
        most: The most repeated documents: (row, anchors that have it, its text or name), at most 10.
        limit: More often than this a random draw gives a document to anchors in one set of twenty.
        beyond: Documents above the limit.
    """

    documents: int
    used: int
    top_share: float
    by_chance: float
    most: tuple[tuple[int, int, str], ...]
    limit: int
    beyond: int


def repeats(ids: NDArray[np.int64], documents: int, called: Callable[[int], str]) -> Repeats:
    """Count how many anchors each document is a negative of. ids (n, k), -1 empty, distinct in a row.

    By chance a document is drawn Poisson(slots / documents) times: so slots of the most common 1 % are the sum over
    its upper tail. O(slots), and a sort of the documents.
    """
    counts = np.bincount(ids[ids >= 0], minlength=documents)
    slots, top = int(counts.sum()), max(1, round(_TOP * documents))
    best = np.argsort(-counts, kind="stable")[:_SHOWN].tolist()
    most = tuple((row, int(counts[row]), called(row)) for row in best if counts[row])
    expected, limit = _chance(slots, documents, top)
    share = float(np.partition(counts, documents - top)[documents - top :].sum() / slots)
    return Repeats(documents, int((counts > 0).sum()), share, expected, most, limit, int((counts > limit).sum()))


def _chance(slots: int, documents: int, top: int) -> tuple[float, int]:
    """(share of slots that the `top` most common documents take, the count that none exceeds in 19 of 20 draws)."""
    mean = slots / documents
    values: NDArray[Any] = np.arange(int(mean + 40 * np.sqrt(mean) + 60))
    factorials = np.cumsum(np.log(np.maximum(values, 1)))
    chance = np.exp(values * np.log(mean) - mean - factorials)
    above = np.append(np.cumsum(chance[::-1])[::-1][1:], 0.0)  # P(X > value)
    taken = np.clip(top / documents - above, 0.0, chance)  # of each value, from the top, until it is full
    limit = int(np.argmax(documents * above <= 0.05))
    return float((taken * values).sum() / mean), limit
