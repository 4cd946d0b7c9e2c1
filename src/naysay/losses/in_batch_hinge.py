"""Hinge over the rest of the batch: all violations of the margin, or the largest few."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor

from naysay.checks import check_number, check_whole, public, raise_invalid
from naysay.losses._blocks import BLOCK, Columns, blockwise, columns
from naysay.losses._inputs import as_partner, as_vectors, computing_dtype, label_pair


@public
def in_batch_hinge(
    anchors: Tensor,
    keys: Tensor | None = None,
    *,
    partner: Any = None,
    margin: float = 0.2,
    among: int | None = None,
    mask: Any = None,
    labels: Any = None,
    key_labels: Any = None,
    block: int = BLOCK,
) -> Tensor:
    """Compute the hinge loss of each anchor against all keys: sum_j max(0, margin + s_ij - s_ip), p its positive.

    With among=m only the m largest terms count; among=1 is the hardest negative of the batch, as in VSE++ and in
    batch-hard triplets, and None sums all, as in VSE0. For both directions of pairs add in_batch_hinge(a, b) and
    in_batch_hinge(b, a). The papers sum over rows, so their step grows with the batch; take `.sum()` for that. The
    hardest negative from the first step on can stall: raise the hardness by lowering `among` during training.
    Time and memory are those of `in_batch`.

    Faghri, Fleet, Kiros, Fidler. VSE++: Improving Visual-Semantic Embeddings with Hard Negatives. BMVC 2018.

    Args:
        anchors: (N, d); scores are dot products, so normalise first for cosines.
        keys: (M, d), or None: the anchors are their own keys.
        partner: (N,) the key that is the anchor's positive; None: key i for anchor i.
        margin: At least 0.
        among: How many of the largest terms count; None: all.
        mask: As in `in_batch`: True where a key may be a negative.
        labels: (N,) or (G, N): keys with the anchor's own label are left out, such as captions of one image.
        key_labels: (M,) or (G, M); without keys, `labels` are used for both.
        block: Scores in memory at once.

    Returns:
        (N,) losses, unreduced; 0 for a row with no negatives.

    Examples:
        >>> import torch
        >>> in_batch_hinge(torch.eye(3), torch.eye(3).roll(1, 0), margin=0.2, among=1)
        tensor([1.2000, 1.2000, 1.2000])
    """
    check_number("margin", margin, at_least=0, finite=True)
    check_whole("block", block, 1)
    if among is not None:
        check_whole("among", among, 1)
    given = as_vectors("anchors", anchors)
    right = given if keys is None else as_vectors("keys", keys, given)
    own, rows, size = keys is None, len(given), len(right)
    pairs = as_partner(partner, rows, size, given.device, own=own)
    same: tuple[Tensor | None, Tensor | None] = (None, None)
    if labels is not None:
        same = label_pair(labels, key_labels, rows, size, given.device, own=own)
    elif key_labels is not None:
        raise_invalid("key_labels", "given with labels", "key_labels without them")
    left, right = given.to(computing_dtype(given)), right.to(computing_dtype(given))
    form = _Violations(columns(rows, size, left, own=own, mask=mask), pairs, float(margin), among, *same)
    return blockwise(left, right, None, form, block, "anchors").to(given.dtype)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Violations:
    """The form of this loss for `blockwise`."""

    columns: Columns
    partner: Tensor  # (N,)
    margin: float
    among: int | None
    labels: Tensor | None  # (G, N)
    key_labels: Tensor | None  # (G, M)

    def __call__(self, scores: Tensor, rows: slice, inputs: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Return the losses of a block; its scores become the gradient."""
        partner, here = self.partner[rows], torch.arange(len(scores), device=scores.device)
        gaps = scores - scores[here, partner][:, None] + self.margin
        hidden = self.columns.hidden(rows)
        if hidden is not None:
            gaps.masked_fill_(hidden, -torch.inf)
        self.columns.exclude_self(gaps, rows, partner)
        if self.labels is None or self.key_labels is None:
            kept = self._largest(gaps)
        else:
            same = self.labels[:, rows, None] == self.key_labels[:, None]
            same &= self.labels[:, rows, None] >= 0
            kept = torch.stack([self._largest(gaps.masked_fill(one, -torch.inf)) for one in same]).mean(dim=0)
        loss = (kept * gaps.clamp_min(0.0)).sum(dim=1)
        scores.copy_(kept)
        scores[here, partner] = -kept.sum(dim=1)
        return loss, None

    def _largest(self, gaps: Tensor) -> Tensor:
        """1 where a term counts, else 0."""
        if self.among is None or self.among >= gaps.shape[1]:
            return (gaps > 0).to(gaps.dtype)
        largest = gaps.topk(self.among, dim=1).indices
        return torch.zeros_like(gaps).scatter_(1, largest, (gaps.gather(1, largest) > 0).to(gaps.dtype))
