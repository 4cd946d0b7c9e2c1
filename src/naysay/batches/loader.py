"""BatchSampler: a plan of batches as what torch's DataLoader takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, final

from naysay.checks import check_whole, public, raise_invalid
from naysay.rng import rng_for
from naysay.text import described


@final
@public
class BatchSampler:
    """Lists of rows for `torch.utils.data.DataLoader(dataset, batch_sampler=...)`, and every trainer that passes it on.

    Call `set_epoch` before each epoch, as for torch's DistributedSampler; without it, each pass over it is the next
    epoch. Process `rank` of `ranks` gets every ranks-th batch, and all processes get equally many: up to ranks - 1
    batches at the end of an epoch are left out. It needs no torch.

    Args:
        batches: Anything with plan(epoch, *, rng) -> (n_batches, size) rows, -1 for none, and len.
        seed: Of the plans; the same in all processes.
        rank: The number of this process.
        ranks: The number of processes.

    Examples:
        >>> import naysay as ns
        >>> sampler = BatchSampler(ns.batches.Shuffled(5, 2), seed=0)
        >>> len(sampler), [len(batch) for batch in sampler]
        (3, [2, 2, 1])
    """

    def __init__(self, batches: Any, seed: int = 0, *, rank: int = 0, ranks: int = 1) -> None:
        """Start at epoch 0."""
        if isinstance(batches, type) or not hasattr(batches, "plan"):
            raise_invalid("batches", "a plan of batches, with a method plan(epoch, *, rng)", type(batches).__name__)
        self.batches, self.seed = batches, check_whole("seed", seed, 0)
        self.ranks = check_whole("ranks", ranks, 1)
        self.rank = check_whole("rank", rank, 0, self.ranks - 1)
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Make the next pass that of this epoch."""
        self.epoch = check_whole("epoch", epoch, 0)

    def __len__(self) -> int:
        """The number of batches that a process gets."""
        return len(self.batches) // self.ranks

    def __iter__(self) -> Iterator[list[int]]:
        """The batches of an epoch."""
        plan = self.batches.plan(self.epoch, rng=rng_for(self.seed, self.epoch))
        self.epoch += 1
        for batch in plan[self.rank : len(self) * self.ranks : self.ranks]:
            yield batch[batch >= 0].tolist()

    def __repr__(self) -> str:
        return described(self, f"epoch {self.epoch}")
