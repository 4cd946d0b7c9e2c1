"""Keys: 16 bytes that stand for a string, so that millions of ids or texts are matched without being held."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint64]
Ids = NDArray[np.int64]


def keys_of(strings: list[str]) -> Keys:
    """(n, 2) the 128 bits of BLAKE2b of each string: two different ones are never the same, for all that is known."""
    digests = [hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in strings]
    return np.frombuffer(b"".join(digests), np.uint64).reshape(-1, 2)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Distinct:
    """Which strings of a list are the same.

    first   (m,) where each distinct one stands first, ascending: they are numbered in this order
    which   (n,) the number of each
    keys    (m, 2)
    """

    first: Ids
    which: Ids
    keys: Keys


def distinct(keys: Keys) -> Distinct:
    """Number keys in the order of their first appearance. A sort."""
    order = np.lexsort((np.arange(len(keys)), keys[:, 1], keys[:, 0]))
    ordered = keys[order]
    new = np.ones(len(keys), np.bool_)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    group = np.cumsum(new) - 1
    heads = order[new]  # the first of each group, because the sort goes by place last
    rank = np.empty(len(heads), np.int64)
    rank[np.argsort(heads, kind="stable")] = np.arange(len(heads))
    which = np.empty(len(keys), np.int64)
    which[order] = rank[group]
    first = np.sort(heads)
    return Distinct(first, which, keys[first])


@final
class Places:
    """The rows of a file in which wanted keys stand, found in one pass over it."""

    def __init__(self, wanted: Keys) -> None:
        """Be ready to look for distinct keys."""
        self._order = np.argsort(wanted[:, 0], kind="stable")
        self._sorted = wanted[self._order]
        self.rows = np.full(len(wanted), -1, np.int64)
        self.again: tuple[int, int] | None = None  # the first key that stands in two rows
        self._seen = 0

    def look(self, keys: Keys) -> None:
        """Look at the keys of the next rows; the first row of a key counts."""
        if len(self._sorted):
            # Of two wanted keys with the same first half, one would not be found: that is a refusal, no wrong answer.
            at = np.minimum(np.searchsorted(self._sorted[:, 0], keys[:, 0]), len(self._sorted) - 1)
            hits = np.flatnonzero((self._sorted[at] == keys).all(axis=1))
            which, rows = self._order[at[hits]], self._seen + hits
            twice = self.rows[which] >= 0
            fresh, first = np.unique(which[~twice], return_index=True)
            self.rows[fresh] = rows[~twice][first]
            late = np.flatnonzero(self.rows[which] != rows)
            if self.again is None and len(late):
                self.again = (int(self.rows[which[late[0]]]), int(rows[late[0]]))
        self._seen += len(keys)


def places_of(wanted: Keys, blocks: Iterable[list[Any]]) -> Places:
    """Where wanted keys stand among the strings of blocks."""
    found = Places(wanted)
    for block in blocks:
        found.look(keys_of([text if isinstance(text, str) else str(text) for text in block]))
    return found
