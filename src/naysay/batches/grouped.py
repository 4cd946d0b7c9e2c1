"""Grouped: batches of rows that are alike, because they are from one group or a few."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from naysay.batches._plans import Ids, batches_needed, check_epoch, check_sizes, labels_of
from naysay.checks import check_whole, public, raise_invalid
from naysay.text import described


@final
@public
class Grouped:
    """Batches from `per_batch` groups each, so that in-batch negatives are of the anchor's own topic, task or language.

    Every row comes once an epoch. The rows of a group are shuffled and cut into parts of size / per_batch; the parts
    are shuffled, and per_batch of them are a batch. A group's last part may be shorter, and so may its batch.

    Hofstaetter, Lin, Yang, Lin, Hanbury. Efficiently Teaching an Effective Dense Retriever with Balanced Topic Aware
    Sampling. SIGIR 2021 (TAS; groups are clusters of queries). Its code draws clusters without epochs, so it does not
    promise that every query comes.

    Cost: a sort of n numbers per epoch.

    Args:
        groups: (n,) the group of each row, at least 0.
        size: Rows per batch.
        per_batch: How many parts of groups make a batch; it divides `size`.

    Examples:
        >>> import naysay as ns
        >>> groups = [0, 1, 0, 1, 0, 1]
        >>> plan = Grouped(groups, 3).plan(0, rng=ns.rng_for(0))
        >>> sorted(sorted(batch) for batch in plan.tolist())
        [[0, 2, 4], [1, 3, 5]]
    """

    def __init__(self, groups: Any, size: int, *, per_batch: int = 1) -> None:
        """Check the groups."""
        self.groups = labels_of("groups", groups)
        if self.groups.size and self.groups.min() < 0:
            raise_invalid("groups", "at least 0", int(self.groups.min()), "Give a row without a group one of its own.")
        self.n, self.size = check_sizes(len(self.groups), size)
        self.per_batch = check_whole("per_batch", per_batch, 1)
        if self.size % self.per_batch:
            raise_invalid("per_batch", f"a divisor of `size`, {self.size}", self.per_batch)
        self._parts = int(sum(-(-np.unique(self.groups, return_counts=True)[1] // (self.size // self.per_batch))))

    def __len__(self) -> int:
        """The number of batches of an epoch."""
        return batches_needed(self._parts, self.per_batch)

    def plan(self, epoch: int, *, rng: np.random.Generator) -> Ids:
        """Return (n_batches, size) rows; -1 where a batch is not full."""
        check_epoch(epoch, rng)
        part_size = self.size // self.per_batch
        order = rng.permutation(self.n)
        order = order[np.argsort(self.groups[order], kind="stable")]
        group = self.groups[order]
        firsts = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
        rank = np.arange(self.n) - np.repeat(firsts, np.diff(np.append(firsts, self.n)))
        begins = np.cumsum(rank % part_size == 0) - 1  # the part of each row
        place = rng.permutation(self._parts)[begins]
        out = np.full((len(self) * self.per_batch, part_size), -1, np.int64)
        out[place, rank % part_size] = order
        out = out.reshape(len(self), self.size)
        return np.take_along_axis(out, np.argsort(out < 0, axis=1, kind="stable"), axis=1)

    def __repr__(self) -> str:
        return described(self)
