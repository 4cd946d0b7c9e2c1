"""Memory: a queue of what earlier batches held. The review's memory pool."""

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
from naysay.pools._slots import ON_SHORT, anchors_of, asked, check_distinct, check_ids, shortfall
from naysay.pools.in_batch import Ids, asking, drawn, known_rows, usable
from naysay.positives import Positives
from naysay.rng import key_from
from naysay.types import Negatives, Query, positive_ids


@final
@public
class Memory:
    """First in, first out: the last `size` entries (id, owner, vector) that were pushed.

    A row may use an entry unless its id is the query's positive, its owner is the anchor, or the pair is known; draws
    are uniform over the entries it may use. An id with two entries has two chances to come first, so log_q is None.
    The queue starts empty, and its ids, owners and place are part of `state`: nothing in it is noise, an image is not
    its own negative an epoch later, and a run resumes with the queue it had.

    He et al. Momentum Contrast. CVPR 2020 (vectors of a slow encoder); Wang et al. Cross-Batch Memory. CVPR 2020.

    Cost: 16 bytes an entry and its vector; push O(pushed); a draw O(1) in expectation and the copy of its vector, once
    O(size) for a row that may use hardly any entry.

    Args:
        size: How many entries are kept.
        positives: What is excluded beside an anchor's own entries, exactly: positives and ignored pairs.
        distinct: Whether a row holds an id at most once (default) or draws are independent.
        on_short: "pad" leaves -1 where nothing is left to draw and counts it in `dropped`; "raise" refuses.

    Example:
        >>> import naysay as ns
        >>> memory = Memory(3)
        >>> memory.push([4, 5, 6, 7])
        >>> memory.draw(ns.Query([6]), rng=ns.rng_for(0)).ids.tolist()
        [[5, -1, 7]]
    """

    def __init__(
        self, size: int, positives: Positives | None = None, *, distinct: bool = True, on_short: str = "pad"
    ) -> None:
        """An empty queue; the room for vectors is made at the first push that has any."""
        self.size = check_whole("size", size, 1)
        if self.size >= 1 << 32:
            raise_invalid("size", "below 2^32", size)
        known_rows(positives)  # refuses what is no Positives
        check_one_of("on_short", on_short, ON_SHORT)
        self.positives = positives
        self.distinct = check_distinct(distinct)
        self.on_short = on_short
        self._ids = np.empty(self.size, np.int64)
        self._owners = np.empty(self.size, np.int64)
        self._vectors: NDArray[Any] | None = None
        self._held = 0  # entries, in places 0 ... held - 1
        self._next = 0  # the place of the next one

    def __len__(self) -> int:
        """How many entries are held."""
        return self._held

    @property
    def ids(self) -> Ids:
        """The ids held, oldest first, (len,)."""
        return self._ids[self._order]

    @property
    def owners(self) -> Ids:
        """The anchor that each entry belongs to, oldest first, (len,)."""
        return self._owners[self._order]

    @property
    def vectors(self) -> NDArray[Any] | None:
        """The vectors held, oldest first, (len, d): the columns of `draw(query, rng=rng)`. None if none were pushed."""
        return None if self._vectors is None else self._vectors[self._order]

    @property
    def _order(self) -> Ids:
        return (self._next - self._held + np.arange(self._held)) % self.size

    def push(self, ids: ArrayLike, owners: ArrayLike | None = None, vectors: ArrayLike | None = None) -> None:
        """Add n entries; the oldest make room. Of more than `size` entries the last `size` stay.

        Args:
            ids: (n,).
            owners: (n,) the anchor that each entry belongs to and is never drawn for, -1 for nobody. None takes the
                ids: right where anchors and items are one set, as in self-supervision.
            vectors: (n, d) floating, NumPy or torch, kept in the type of the first push; with all pushes or with
                none.
        """
        self._push(ids, owners, vectors)

    def observe(
        self, query: Query, negatives: Negatives, *, positive_scores: Any = None, vectors: ArrayLike | None = None
    ) -> None:
        """Push the query's positives, owned by its anchors: what a training loop calls once a step.

        `negatives` and `positive_scores` are what every part that learns is told; a queue has no use for them.

        Args:
            vectors: (B, d) the vectors of the positives, for a memory that keeps vectors.
        """
        anchors = anchors_of(query, None if self.positives is None else self.positives.n_anchors)
        self._push(positive_ids(query), anchors, vectors)

    def _push(self, ids: ArrayLike, owners: ArrayLike | None, vectors: ArrayLike | None) -> None:
        new = whole_numbers("ids", to_numpy(ids)).astype(np.int64, copy=False)
        if owners is None and self.positives is not None and self.positives.n_anchors != self.positives.n_items:
            rule = f"given where {self.positives.n_anchors} anchors and {self.positives.n_items} items are two sets"
            raise_invalid("owners", rule, None, "Pass the anchor of each entry, or -1 for nobody.")
        belongs = new if owners is None else whole_numbers("owners", to_numpy(owners)).astype(np.int64)
        given = None if vectors is None else as_array("vectors", to_numpy(vectors))
        self._check_entries(new, belongs, given)
        if self._held:
            _check_alike(self._vectors, given)
        if len(new) == 0:
            return
        places = ((self._next + np.arange(len(new))) % self.size)[-self.size :]
        self._ids[places] = new[-self.size :]
        self._owners[places] = belongs[-self.size :]
        if given is not None:
            if self._vectors is None:
                self._vectors = np.zeros((self.size, given.shape[1]), given.dtype)
            self._vectors[places] = given[-self.size :]
        self._held = min(self._held + len(new), self.size)
        self._next = (self._next + len(new)) % self.size

    def draw(self, query: Query, n: Any = None, *, rng: np.random.Generator) -> Negatives:
        """(B, n) entries with their vectors (B, n, d), 0 in empty slots; n is a number or (B,) of them.

        With n=None all entries come back as (B, len), oldest first, -1 where a row may not use one; `dropped` counts
        those: "same item", "same anchor" or "known", the first that holds. The vectors are then one read-only view that
        all rows share, empty slots included: mask the scores.
        """
        anchors, wanted = asking(query, self.positives)
        known = known_rows(self.positives)
        if n is None:
            check_generator(rng)
            ids, dropped = usable(anchors, wanted, self.ids, self.owners, known)
            columns = self.vectors
            shared = None if columns is None else np.broadcast_to(columns, (len(ids), *columns.shape))
            return Negatives(ids, vectors=shared, dropped=dropped)
        counts, width = asked(n, len(anchors))
        entries = (self._ids[: self._held], self._owners[: self._held])
        key = key_from(rng)
        ids, places = drawn(key, counts, width, anchors, wanted, *entries, known, distinct=self.distinct)
        dropped = shortfall(self.on_short, ids, counts)
        vectors = None
        if self._vectors is not None:
            vectors = self._vectors[places]  # the place -1 is some entry, and cleared
            vectors[places < 0] = 0
        return Negatives(ids, vectors=vectors, dropped=dropped)

    def state(self) -> dict[str, NDArray[Any] | int]:
        """Everything that the next draw and push depend on but the settings: entries, place, and size."""
        held = {"ids": self._ids, "owners": self._owners, "vectors": self._vectors}
        arrays = {name: array[: self._held].copy() for name, array in held.items() if array is not None}
        return {"size": self.size, "next": self._next, **arrays}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back what `state` gave; refused, with nothing changed, if it is of another size or not whole."""
        if not isinstance(state, Mapping):
            raise_invalid("state", "what Memory.state gave", type(state).__name__)
        missing = [name for name in ("size", "next", "ids", "owners") if name not in state]
        if missing:
            raise_invalid("state", "what Memory.state gave", f"no {missing[0]!r} in {shown(list(state))}")
        size, place = (_number(name, state[name]) for name in ("size", "next"))
        if size != self.size:
            raise_invalid("state", f"of a memory of size {self.size}", size, f"Make a Memory({size}) for it.")
        ids = whole_numbers("ids", state["ids"]).astype(np.int64, copy=False)
        owners = whole_numbers("owners", state["owners"]).astype(np.int64, copy=False)
        vectors = None if state.get("vectors") is None else as_array("vectors", to_numpy(state["vectors"]))
        self._check_entries(ids, owners, vectors)
        held = len(ids)
        if held > self.size or not 0 <= place < self.size or (held < self.size and place != held):
            raise_invalid("state", "of a whole queue", f"{held} entries and the next at {place}")
        self._ids[:held], self._owners[:held] = ids, owners
        self._vectors = None
        if vectors is not None:
            self._vectors = np.zeros((self.size, vectors.shape[1]), vectors.dtype)
            self._vectors[:held] = vectors
        self._held, self._next = held, place

    def _check_entries(self, ids: Ids, owners: Ids, vectors: NDArray[Any] | None) -> None:
        """Refuse entries that cannot be: lengths, ranges, and vectors that are not numbers."""
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
        """The settings in one line."""
        held = f"{self._held:,} of {self.size:,} entries"
        return f"Memory({held}, {self.positives!r}, distinct={self.distinct}, on_short={self.on_short!r})"


def _number(name: str, value: Any) -> int:
    """A number of a state, which files may keep as an array without dimensions."""
    plain = to_numpy(value)
    return check_whole(name, plain.item() if isinstance(plain, np.ndarray) and plain.ndim == 0 else plain, 0)


def _check_alike(held: NDArray[Any] | None, given: NDArray[Any] | None) -> None:
    """Refuse vectors of another kind than those held: all or none, one dimension, one type."""
    kinds = ["None" if array is None else f"{array.shape[1]} x {array.dtype}" for array in (held, given)]
    if kinds[0] != kinds[1]:
        advice = "All entries have vectors of one kind, or none has; start a new memory to change."
        raise_invalid("vectors", f"{kinds[0]}, like the entries held", kinds[1], advice)
