"""Memory: a queue of the items of earlier batches. The review's memory pool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from naysay.arrays import to_numpy
from naysay.checks import (
    as_array,
    check_generator,
    check_lengths,
    check_one_of,
    check_whole,
    first_bad,
    public,
    raise_invalid,
    shown,
    whole_numbers,
)
from naysay.pools._slots import ON_SHORT, anchors_of, check_distinct, check_ids, shortfall, slot_counts
from naysay.pools.in_batch import Ids, anchors_and_positives, drawn, known_rows, usable
from naysay.positives import Positives
from naysay.rng import key_from
from naysay.types import Negatives, Query, positive_ids


@final
@public
class Memory:
    """Draw from a first-in-first-out queue of the last `size` entries (id, owner, vector).

    A row may use an entry unless its id is the query's positive, its owner is the anchor, or the pair is known; draws
    are uniform over the entries it may use. An id with two entries is twice as likely to be drawn first, so log_q is
    None. The queue starts empty, without random entries. Owners prevent that an image is its own negative an epoch
    later. `state` has the whole queue.

    He et al. Momentum Contrast. CVPR 2020 (vectors of a slow encoder); Wang et al. Cross-Batch Memory. CVPR 2020.

    Cost: 16 bytes per entry, and its vector; push O(pushed); a draw O(1) in expectation and the copy of its vector, and
    O(size) once for a row that may use hardly any entry.

    Args:
        size: The number of entries.
        positives: Further pairs to exclude, exactly: positives and ignored pairs.
        distinct: Whether a row has an id at most once (default), or draws are independent.
        on_short: "pad" leaves -1 where nothing is left to draw and counts it in `dropped`; "raise" raises NaysayError.

    Raises:
        NaysayError: If an argument is invalid.

    Examples:
        >>> import naysay as ns
        >>> memory = Memory(3)
        >>> memory.push([4, 5, 6, 7])
        >>> memory.draw(ns.Query([6]), rng=ns.rng_for(0)).ids.tolist()
        [[5, -1, 7]]
    """

    def __init__(
        self, size: int, positives: Positives | None = None, *, distinct: bool = True, on_short: str = "pad"
    ) -> None:
        """Make an empty queue. Memory for vectors is allocated at the first push that has any."""
        self.size = check_whole("size", size, 1)
        if self.size >= 1 << 32:
            raise_invalid("size", "below 2^32", size)
        known_rows(positives)  # raises if it is not a Positives
        check_one_of("on_short", on_short, ON_SHORT)
        self.positives = positives
        self.distinct = check_distinct(distinct)
        self.on_short = on_short
        self._ids = np.empty(self.size, np.int64)
        self._owners = np.empty(self.size, np.int64)
        self._vectors: NDArray[Any] | None = None
        self._count = 0  # entries, in places 0 ... count - 1
        self._next = 0  # the place of the next one

    def __len__(self) -> int:
        """The number of entries."""
        return self._count

    @property
    def ids(self) -> Ids:
        """(len,) the ids, oldest first."""
        return self._ids[self._order]

    @property
    def owners(self) -> Ids:
        """(len,) the anchor that each entry belongs to, oldest first."""
        return self._owners[self._order]

    @property
    def vectors(self) -> NDArray[Any] | None:
        """(len, d) the vectors, oldest first, like the columns of `draw(query, rng=rng)`. None if none were pushed."""
        return None if self._vectors is None else self._vectors[self._order]

    @property
    def _order(self) -> Ids:
        return (self._next - self._count + np.arange(self._count)) % self.size

    def push(self, ids: ArrayLike, owners: ArrayLike | None = None, vectors: ArrayLike | None = None) -> None:
        """Add n entries in place of the oldest. Of more than `size` entries the last `size` stay.

        Args:
            ids: (n,) items.
            owners: (n,) the anchor that each entry belongs to and is never drawn for; -1 for none. None takes the ids,
                for anchors and items that are one set, as in self-supervision.
            vectors: (n, d) floating-point, NumPy or torch, stored in the type of the first push. Either all pushes have
                vectors or none.

        Raises:
            NaysayError: If lengths, ids or vectors are invalid.
        """
        self._push(ids, owners, vectors)

    def observe(
        self, query: Query, negatives: Negatives, *, positive_scores: Any = None, vectors: ArrayLike | None = None
    ) -> None:
        """Push the query's positives, with its anchors as owners. Call it once a step.

        Args:
            query: With positives.
            negatives: Not used.
            positive_scores: Not used.
            vectors: (B, d) the vectors of the positives, for a memory with vectors.
        """
        anchors = anchors_of(query, None if self.positives is None else self.positives.n_anchors)
        self._push(positive_ids(query), anchors, vectors)

    def _push(self, ids: ArrayLike, owners: ArrayLike | None, vectors: ArrayLike | None) -> None:
        new = whole_numbers("ids", to_numpy(ids)).astype(np.int64, copy=False)
        if owners is None and self.positives is not None and self.positives.n_anchors != self.positives.n_items:
            rule = f"given where {self.positives.n_anchors} anchors and {self.positives.n_items} items are two sets"
            raise_invalid("owners", rule, None, "Pass the anchor of each entry, or -1 for none.")
        belongs = new if owners is None else whole_numbers("owners", to_numpy(owners)).astype(np.int64)
        given = None if vectors is None else as_array("vectors", to_numpy(vectors))
        self._check_entries(new, belongs, given)
        if self._count:
            _check_same_kind(self._vectors, given)
        if len(new) == 0:
            return
        places = ((self._next + np.arange(len(new))) % self.size)[-self.size :]
        self._ids[places] = new[-self.size :]
        self._owners[places] = belongs[-self.size :]
        if given is not None:
            if self._vectors is None:
                self._vectors = np.zeros((self.size, given.shape[1]), given.dtype)
            self._vectors[places] = given[-self.size :]
        self._count = min(self._count + len(new), self.size)
        self._next = (self._next + len(new)) % self.size

    def draw(self, query: Query, n: Any = None, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, n) entries with their vectors (B, n, d), 0 in empty slots; n is a number, or (B,) numbers.

        With n=None all entries are returned as (B, len), oldest first, -1 where a row may not use one. `dropped` counts
        those by the first reason that holds: "same item", "same anchor" or "known". The vectors are then a read-only
        view that all rows share, also in empty slots: mask the scores.
        """
        anchors, wanted = anchors_and_positives(query, self.positives)
        known = known_rows(self.positives)
        if n is None:
            check_generator(rng)
            ids, dropped = usable((anchors, wanted, self.ids, self.owners), known)
            columns = self.vectors
            shared = None if columns is None else np.broadcast_to(columns, (len(ids), *columns.shape))
            return Negatives(ids, vectors=shared, dropped=dropped)
        counts, width = slot_counts(n, len(anchors))
        batch = (anchors, wanted, self._ids[: self._count], self._owners[: self._count])
        ids, places = drawn(key_from(rng), counts, width, batch, known, distinct=self.distinct)
        dropped = shortfall(self.on_short, ids, counts)
        vectors = None
        if self._vectors is not None:
            vectors = self._vectors[places]  # place -1 is some entry, reset below
            vectors[places < 0] = 0
        return Negatives(ids, vectors=vectors, dropped=dropped)

    def state(self) -> dict[str, NDArray[Any] | int]:
        """All that the next draw and push depend on, apart from the settings."""
        stored = {"ids": self._ids, "owners": self._owners, "vectors": self._vectors}
        arrays = {name: array[: self._count].copy() for name, array in stored.items() if array is not None}
        return {"size": self.size, "next": self._next, **arrays}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned. Raises NaysayError, with nothing changed, if size or entries do not fit."""
        if not isinstance(state, Mapping):
            raise_invalid("state", "what Memory.state returned", type(state).__name__)
        missing = [name for name in ("size", "next", "ids", "owners") if name not in state]
        if missing:
            raise_invalid("state", "what Memory.state returned", f"no {missing[0]!r} in {shown(list(state))}")
        size, place = (_number(name, state[name]) for name in ("size", "next"))
        if size != self.size:
            raise_invalid("state", f"of a memory of size {self.size}", size, f"Make a Memory({size}) for it.")
        ids = whole_numbers("ids", state["ids"]).astype(np.int64, copy=False)
        owners = whole_numbers("owners", state["owners"]).astype(np.int64, copy=False)
        vectors = None if state.get("vectors") is None else as_array("vectors", to_numpy(state["vectors"]))
        self._check_entries(ids, owners, vectors)
        count = len(ids)
        if count > self.size or not 0 <= place < self.size or (count < self.size and place != count):
            raise_invalid("state", "of a whole queue", f"{count} entries and the next at {place}")
        self._ids[:count], self._owners[:count] = ids, owners
        self._vectors = None
        if vectors is not None:
            self._vectors = np.zeros((self.size, vectors.shape[1]), vectors.dtype)
            self._vectors[:count] = vectors
        self._count, self._next = count, place

    def _check_entries(self, ids: Ids, owners: Ids, vectors: NDArray[Any] | None) -> None:
        """Raise if lengths, ids or vectors are invalid."""
        check_lengths(ids=len(ids), owners=len(owners))
        known = self.positives
        check_ids("ids", ids, None if known is None else known.n_items, "items")
        check_ids("owners", owners, None if known is None else known.n_anchors, "anchors", least=-1)
        if vectors is None:
            return
        if vectors.ndim != 2 or len(vectors) != len(ids):
            raise_invalid("vectors", f"of shape ({len(ids)}, d), like ids", f"shape {vectors.shape}")
        if vectors.dtype.kind != "f":
            raise_invalid("vectors", "floating numbers", f"dtype {vectors.dtype}")
        bad = ~np.isfinite(vectors)
        if bad.any():
            raise_invalid("vectors", "finite", first_bad(vectors[np.arange(len(bad)), bad.argmax(axis=1)], bad))

    def __repr__(self) -> str:
        """The settings."""
        entries = f"{self._count:,} of {self.size:,} entries"
        return f"Memory({entries}, {self.positives!r}, distinct={self.distinct}, on_short={self.on_short!r})"


def _number(name: str, value: Any) -> int:
    """A number of a state; files may store it as an array without dimensions."""
    plain = to_numpy(value)
    return check_whole(name, plain.item() if isinstance(plain, np.ndarray) and plain.ndim == 0 else plain, 0)


def _check_same_kind(stored: NDArray[Any] | None, given: NDArray[Any] | None) -> None:
    """Raise if vectors differ in kind from those stored: all or none, one dimension, one type."""
    kinds = ["None" if array is None else f"{array.shape[1]} x {array.dtype}" for array in (stored, given)]
    if kinds[0] != kinds[1]:
        advice = "All entries have vectors of one kind, or none has; start a new memory to change."
        raise_invalid("vectors", f"{kinds[0]}, like the entries stored", kinds[1], advice)
