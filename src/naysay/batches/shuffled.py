"""Shuffled: random batches in which some rows never meet."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from naysay.batches._plans import Ids, batches_needed, check_epoch, check_sizes, labels_of
from naysay.checks import public, raise_invalid
from naysay.kernels.batches import place_labelled, place_linked
from naysay.positives import Positives
from naysay.text import described


@final
@public
class Shuffled:
    """Random batches that hold each row once an epoch; rows that are forbidden together are in different batches.

    Rows are placed in random order. Each goes to the first batch that is not full and holds no row that is forbidden
    with it. With in-batch negatives, two rows with the same item are each other's false negatives: pass the items as
    `forbid`. Rows that fit in no batch are left out of this epoch; `dropped` counts them.

    Cost: O(n + forbidden pairs); 16 bytes per row.

    Args:
        n: The number of rows.
        size: Rows per batch.
        forbid: (n,) labels: two rows of one label never meet; -1 matches nothing. Or a Positives of (row, row) pairs,
            in either direction.

    Examples:
        >>> import naysay as ns
        >>> plan = Shuffled(6, 2, forbid=[0, 0, 0, 1, 1, 2]).plan(0, rng=ns.rng_for(0))
        >>> plan.shape, sorted(plan.ravel().tolist())
        ((3, 2), [0, 1, 2, 3, 4, 5])
    """

    def __init__(self, n: int, size: int, forbid: Any = None) -> None:
        """Check the labels, or make the links symmetric."""
        self.n, self.size = check_sizes(n, size)
        self.forbid = forbid
        self.dropped: dict[str, int] = {}
        self._labels = np.full(self.n, -1) if forbid is None else None
        self._links: Positives | None = None
        if isinstance(forbid, Positives):
            if max(forbid.n_anchors, forbid.n_items) > self.n:
                got = f"{forbid.n_anchors} x {forbid.n_items}"
                raise_invalid("forbid", f"pairs of {self.n} rows", got)
            self._links = Positives.from_edges(*forbid.pairs(), self.n, self_pairs=True)
        elif forbid is not None:
            given = labels_of("forbid", forbid, self.n)
            found, places = np.unique(given, return_inverse=True)
            self._labels = np.where(given < 0, -1, places.reshape(-1) - int((found < 0).any()))

    def __len__(self) -> int:
        """The number of batches of an epoch."""
        return batches_needed(self.n, self.size)

    def plan(self, epoch: int, *, rng: np.random.Generator) -> Ids:
        """Return (n_batches, size) rows; -1 where a batch is not full."""
        check_epoch(epoch, rng)
        out, counts = np.full((len(self), self.size), -1, np.int64), np.zeros(len(self), np.int64)
        following, order = np.arange(len(self) + 1), rng.permutation(self.n)
        if self._links is not None:
            marks, batch_of = np.full(len(self) + 1, -1), np.full(self.n, -1)
            rows = (np.array(self._links.indptr), np.array(self._links.indices))
            left = place_linked(order, *rows, self.size, following, batch_of, marks, counts, out)
        else:
            next_batch = np.zeros(self.n + 1, np.int64)
            left = place_labelled(order, self._labels, self.size, following, next_batch, counts, out)
        self.dropped = {"forbidden": int(left)} if left else {}
        return out

    def __repr__(self) -> str:
        return described(self)
