"""Memory: a queue of the items of earlier batches. The review's memory pool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from naysay import checks
from naysay._lock import Lock
from naysay._slots import check_ids, like_query
from naysay._state import Entry, read_state
from naysay.arrays import for_checkpoints, is_torch, module_of, to_numpy, to_torch
from naysay.checks import public
from naysay.pools import _slots
from naysay.pools.in_batch import Ids, anchors_and_positives, drawn, known_rows, usable
from naysay.positives import Positives
from naysay.rng import key_from
from naysay.types import Array, Negatives, Query, positive_ids

_STATE = {
    "size": Entry(whole=True),
    "next": Entry(whole=True),
    "ids": Entry(("n",), whole=True),
    "owners": Entry(("n",), whole=True),
}


@final
@public
class Memory:
    """Draw from a first-in-first-out queue of the last `size` entries (id, owner, vector).

    A row may use an entry unless its id is the query's positive, its owner is the anchor, or the pair is known; draws
    are uniform over the entries it may use. An id with two entries is twice as likely to be drawn first, so log_q is
    None. The queue starts empty, without random entries. Owners prevent that an image is its own negative an epoch
    later. `state` has the whole queue. One thread may push while others draw.

    Vectors keep the array type and the device of what is pushed: tensors on a GPU stay there.

    He et al. Momentum Contrast. CVPR 2020 (vectors of a slow encoder); Wang et al. Cross-Batch Memory. CVPR 2020.

    Cost: 16 bytes per entry, and its vector; push O(pushed); a draw O(1) in expectation and the copy of its vector, and
    O(size) once for a row that may use hardly any entry.

    Args:
        size: The number of entries.
        positives: Further pairs to exclude, exactly: positives and ignored pairs.
        distinct: Whether a row has an id at most once (default), or draws are independent.
        on_short: "pad" leaves -1 where nothing is left to draw and counts it in `dropped`; "raise" raises NaysayError.

    Examples:
        >>> import naysay as ns
        >>> memory = Memory(3)
        >>> memory.push([4, 5, 6, 7])
        >>> memory.draw(ns.Query([6]), rng=ns.rng_for(0)).ids.tolist()
        [[5, -1, 7]]
    """

    needs_main_process = True  # its draws depend on what it was taught in the training loop

    def __init__(
        self, size: int, positives: Positives | None = None, *, distinct: bool = True, on_short: str = "pad"
    ) -> None:
        """Make an empty queue. Memory for vectors is allocated at the first push that has any."""
        self.size = checks.check_whole("size", size, 1)
        if self.size >= 1 << 32:
            checks.raise_invalid("size", "below 2^32", size)
        _slots.check_known(positives)
        self.positives = positives
        self.distinct, self.on_short = _slots.check_settings(distinct, on_short)
        self._lock = Lock()
        self._ids, self._owners = (np.empty(self.size, np.int64) for _ in range(2))
        self._vectors: Array = None
        self._count = self._next = 0  # entries, in places 0 ... count - 1; and the place of the next one

    def __len__(self) -> int:
        """The number of entries."""
        return self._count

    @property
    def ids(self) -> Ids:
        """(len,) the ids, oldest first."""
        with self._lock:
            return np.asarray(self._oldest_first(self._ids))

    @property
    def owners(self) -> Ids:
        """(len,) the anchor that each entry belongs to, oldest first."""
        with self._lock:
            return np.asarray(self._oldest_first(self._owners))

    @property
    def vectors(self) -> Array:
        """(len, d) a copy of the vectors, oldest first, like the columns of `draw(query, rng=rng)`.

        In NumPy, or in torch on their device, as they were pushed; None if none were.
        """
        with self._lock:
            return None if self._vectors is None else self._oldest_first(self._vectors)

    def _oldest_first(self, stored: Array) -> Any:
        """A copy of the entries of one array, in order of age."""
        parts = (stored[self._next : self._count], stored[: min(self._next, self._count)])
        return module_of(stored).concatenate(parts)

    def push(self, ids: ArrayLike, owners: ArrayLike | None = None, vectors: Any = None) -> None:
        """Add n entries in place of the oldest. Of more than `size` entries the last `size` stay.

        Args:
            ids: (n,) items.
            owners: (n,) the anchor that each entry belongs to and is never drawn for; -1 for none. None takes the ids,
                for anchors and items that are one set, as in self-supervision.
            vectors: (n, d) floating-point, NumPy or torch, stored in the type of the first push and on the device of
                the last. Either all pushes have vectors or none.

        Raises:
            NaysayError: If lengths, ids or vectors are invalid.
        """
        self._push(ids, owners, vectors)

    def observe(self, query: Query, negatives: Negatives, *, positive_scores: Any = None, vectors: Any = None) -> None:
        """Push the query's positives, with its anchors as owners. Call it once a step.

        Args:
            query: With positives.
            negatives: Not used.
            positive_scores: Not used.
            vectors: (B, d) the vectors of the positives, for a memory with vectors.
        """
        anchors = _slots.anchors_of(query, None if self.positives is None else self.positives.n_anchors)
        self._push(positive_ids(query), anchors, vectors)

    def _push(self, ids: ArrayLike, owners: ArrayLike | None, vectors: Any) -> None:
        new = checks.whole_numbers("ids", to_numpy(ids)).astype(np.int64, copy=False)
        if owners is None and self.positives is not None and self.positives.n_anchors != self.positives.n_items:
            rule = f"given where {self.positives.n_anchors} anchors and {self.positives.n_items} items are two sets"
            checks.raise_invalid("owners", rule, None, "Pass the anchor of each entry, or -1 for none.")
        belongs = new if owners is None else checks.whole_numbers("owners", to_numpy(owners)).astype(np.int64)
        given = _array(vectors)
        self._check_entries(new, belongs, given)
        if len(new) == 0:
            return
        with self._lock:
            if self._count:
                self._vectors = _moved_like(self._vectors, given)
            else:
                self._vectors = None if given is None else _zeros(self.size, given)
            for stored, added in ((self._ids, new), (self._owners, belongs), (self._vectors, given)):
                if added is not None:
                    self._write(stored, added)
            self._count = min(self._count + len(new), self.size)
            self._next = (self._next + len(new)) % self.size

    def _write(self, stored: Array, added: Array) -> None:
        """Write the last `size` of the new entries from the next place on, and continue at the start."""
        first = (self._next + max(0, len(added) - self.size)) % self.size
        added = added[-self.size :]
        before_end = min(len(added), self.size - first)
        stored[first : first + before_end] = added[:before_end]
        stored[: len(added) - before_end] = added[before_end:]

    def draw(self, query: Query, n: Any = None, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, n) entries with their vectors (B, n, d), 0 in empty slots; n is a number, or (B,) numbers.

        With n=None all entries are returned as (B, len), oldest first, -1 where a row may not use one. `dropped` counts
        those by the first reason that holds: "same item", "same anchor" or "known". The vectors are then a view that
        all rows share (read-only in NumPy), also in empty slots: mask the scores. Vectors come in the array type of the
        query, on its device.
        """
        anchors, wanted = anchors_and_positives(query, self.positives)
        known = known_rows(self.positives)
        if n is None:
            checks.check_generator(rng)
            with self._lock:
                items, owners, columns = self.ids, self.owners, self.vectors
            ids, dropped = usable((anchors, wanted, items, owners), known)
            return Negatives(ids, vectors=_shared(columns, query), dropped=dropped)
        counts, width = _slots.slot_counts(n, len(anchors))
        key = key_from(rng)
        with self._lock:
            batch = (anchors, wanted, self._ids[: self._count], self._owners[: self._count])
            ids, places = drawn(key, counts, width, batch, known, distinct=self.distinct)
            vectors = self._vectors
            if vectors is not None:  # place -1 is some entry, reset below
                vectors = vectors[to_torch(places, vectors.device) if is_torch(vectors) else places]
        dropped = _slots.shortfall(self.on_short, ids, counts)
        if vectors is not None:
            vectors = like_query(vectors, query)
            vectors[like_query(places < 0, query)] = 0
        return Negatives(ids, vectors=vectors, dropped=dropped)

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """All that the next draw and push depend on, apart from the settings; vectors in NumPy."""
        with self._lock:
            stored = {"ids": self._ids, "owners": self._owners, "vectors": self._vectors}
            entries = {name: array[: self._count] for name, array in stored.items() if array is not None}
            arrays = {name: np.array(to_numpy(array)) for name, array in entries.items()}
            return {"size": self.size, "next": self._next, **arrays}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned. Raises NaysayError, with nothing changed, if size or entries do not fit."""
        read = read_state(state, _STATE, ["vectors"])
        size, count, next_place = int(read["size"]), len(read["ids"]), int(read["next"])
        if size != self.size:
            checks.raise_invalid("state", f"of a memory of size {self.size}", size, f"Make a Memory({size}) for it.")
        is_full = count == size and 0 <= next_place < size
        if not is_full and not next_place == count < size:
            checks.raise_invalid("state", "of a whole queue", f"{count} entries and the next at {next_place}")
        vectors = _array(state.get("vectors"))
        self._check_entries(read["ids"], read["owners"], vectors)
        with self._lock:
            self._ids[:count], self._owners[:count] = read["ids"], read["owners"]
            self._vectors = None
            if vectors is not None:
                self._vectors = _zeros(self.size, vectors)
                self._vectors[:count] = vectors
            self._count, self._next = count, next_place

    def _check_entries(self, ids: Ids, owners: Ids, vectors: Array) -> None:
        """Raise if lengths, ids or vectors are invalid."""
        checks.check_lengths(ids=len(ids), owners=len(owners))
        known = self.positives
        check_ids("ids", ids, None if known is None else known.n_items, "items")
        check_ids("owners", owners, None if known is None else known.n_anchors, "anchors", least=-1)
        if vectors is None:
            return
        if vectors.ndim != 2 or len(vectors) != len(ids):
            checks.raise_invalid("vectors", f"of shape ({len(ids)}, d), like ids", f"shape {tuple(vectors.shape)}")
        floating = vectors.is_floating_point() if is_torch(vectors) else vectors.dtype.kind == "f"
        if not floating:
            checks.raise_invalid("vectors", "floating numbers", f"dtype {vectors.dtype}")
        finite = module_of(vectors).isfinite(vectors)
        if not bool(finite.all()):
            checks.check_all("vectors", to_numpy(vectors), to_numpy(finite), "finite")

    def __repr__(self) -> str:
        return _slots.shown_settings(self, f"{self._count:,} of {self.size:,} entries", self.positives)


def _array(vectors: Any) -> Array:
    """Vectors without gradients: a tensor as it is, anything else as a NumPy array; None for None."""
    if vectors is None or is_torch(vectors):
        return None if vectors is None else vectors.detach()
    return checks.as_array("vectors", vectors)


def _zeros(size: int, like: Array) -> Array:
    """Zeros for `size` vectors, in the type and on the device of `like`."""
    shape = (size, like.shape[1])
    return like.new_zeros(shape) if is_torch(like) else np.zeros(shape, like.dtype)


def _moved_like(stored: Array, given: Array) -> Array:
    """The stored vectors in the array type and on the device of what is pushed; raises if their kinds differ."""
    kinds = [
        "None" if array is None else f"{array.shape[1]} x {str(array.dtype).removeprefix('torch.')}"
        for array in (stored, given)
    ]
    if is_torch(given) and isinstance(stored, np.ndarray):  # NumPy has no bfloat16: a state has it as float32
        kinds[0] = kinds[0].replace("float32", "bfloat16") if "bfloat16" in kinds[1] else kinds[0]
    if kinds[0] != kinds[1]:
        advice = "All entries have vectors of one kind, or none has; start a new memory to change."
        checks.raise_invalid("vectors", f"{kinds[0]}, like the entries stored", kinds[1], advice)
    if is_torch(given):
        return to_torch(stored, given.device).to(given.dtype)
    return to_numpy(stored)


def _shared(columns: Array, query: Query) -> Array:
    """(B, M, d): one copy of the columns (M, d) that all rows share, in the array type of the query."""
    if columns is None:
        return None
    shape = (len(query), *columns.shape)
    columns = like_query(columns, query)
    return columns.expand(shape) if is_torch(columns) else np.broadcast_to(columns, shape)
