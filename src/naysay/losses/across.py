"""The batch across processes: every process gets all rows, and gradients are sent back to each row's process."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd.function import once_differentiable

from naysay._processes import exchanging, rank_and_size
from naysay.arrays import is_torch
from naysay.checks import public, raise_invalid

_DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.int32)


class Gathered(NamedTuple):
    """The rows of all processes, in the order of their ranks, and the index of this process's first."""

    rows: Tensor
    first: int


@public
def gather_rows(vectors: Tensor, group: Any = None) -> Gathered:
    """Gather the rows of every process of the group, for `in_batch` to take as keys.

    Row i of this process is row first + i of all, so in_batch(anchors, rows, partner=first + torch.arange(n)) has the
    negatives of one batch of N. The gradient of a row is the sum over all processes' losses. DistributedDataParallel
    then averages over processes: the mean of each process's losses gives the gradient of the mean over the whole batch
    if all n are equal; if not, return losses.sum() * processes / N. Every process must call it, and run backward, the
    same number of times. Cost: N d numbers received, and a sum of N d numbers in the backward pass.

    RocketQA's cross-batch negatives: Qu et al. NAACL 2021; SimCLR's and CLIP's global batch.

    Args:
        vectors: (n, d) this process's rows, or (n,) ids or labels; n may differ between processes, and may be 0.
        group: A process group of torch.distributed; None is all processes. In a group of one, or without
            torch.distributed, the result is the vectors themselves.

    Returns:
        `rows` (N, d) of all processes in the order of their ranks, and `first`, the index of this process's first row.

    Raises:
        NaysayError: On all processes, if widths or dtypes differ between them, or only some require gradients; or if
            the vectors or the group do not fit.

    Examples:
        >>> import torch
        >>> rows, first = gather_rows(torch.eye(2))    # one process
        >>> rows.shape, first
        (torch.Size([2, 2]), 0)
    """
    if not is_torch(vectors):
        raise_invalid("vectors", "a torch tensor", f"a {type(vectors).__name__}")
    if vectors.ndim not in (1, 2):
        raise_invalid("vectors", "of shape (n, d) or (n,)", f"shape {tuple(vectors.shape)}")
    if vectors.dtype not in _DTYPES:
        names = ", ".join(str(dtype).removeprefix("torch.") for dtype in _DTYPES)
        raise_invalid("vectors", f"of one of the dtypes {names}", str(vectors.dtype))
    rank, size = rank_and_size(group)
    if size == 1:
        return Gathered(vectors, 0)
    wanted = vectors.requires_grad and torch.is_grad_enabled()
    with exchanging(group):
        counts = _agreed(vectors, group, wanted=wanted)
        rows: Tensor = _Gather.apply(vectors, counts, rank, group)  # type: ignore[no-untyped-call]
    return Gathered(rows, sum(counts[:rank]))


def _agreed(vectors: Tensor, group: Any, *, wanted: bool) -> list[int]:
    """Return the number of rows of each process; raise on all of them if something else differs."""
    width = vectors.shape[1] if vectors.ndim == 2 else -1
    mine = torch.tensor([len(vectors), width, _DTYPES.index(vectors.dtype), wanted], device=vectors.device)
    everyone = [torch.empty_like(mine) for _ in range(dist.get_world_size(group))]
    dist.all_gather(everyone, mine, group=group)
    counts, widths, dtypes, with_gradients = torch.stack(everyone).T.tolist()
    waits = "The backward pass of one would wait for the others forever."
    for rule, got, advice in (
        ("of one width in all processes", ["(n,)" if width < 0 else f"(n, {width})" for width in widths], ""),
        ("of one dtype in all processes", [str(_DTYPES[place]) for place in dtypes], ""),
        ("with gradients in all processes or in none", ["with" if one else "without" for one in with_gradients], waits),
    ):
        if len(set(got)) > 1:
            raise_invalid("vectors", rule, ", ".join(got), advice)
    return [int(count) for count in counts]


class _Gather(torch.autograd.Function):
    """Forward: all rows. Backward: the sum of the gradients of all processes, for this process's rows."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, counts: list[int], rank: int, group: Any) -> Tensor:
        """Gather blocks of equal size, padded where a process has fewer rows, and remove the padding."""
        ctx.own = slice(sum(counts[:rank]), sum(counts[: rank + 1]))
        ctx.group = group
        block = vectors.new_zeros(max(counts), *vectors.shape[1:])
        block[: len(vectors)] = vectors
        blocks = [torch.empty_like(block) for _ in counts]
        if block.numel():
            dist.all_gather(blocks, block, group=group)
        return torch.cat([block[:count] for block, count in zip(blocks, counts, strict=True)])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        """The gradient of all processes' losses in this process's rows."""
        total = gradient.clone(memory_format=torch.contiguous_format)
        if total.numel():
            dist.all_reduce(total, group=ctx.group)
        return total[ctx.own], None, None, None
