"""Several positives against the rest of a batch, in blocks: attraction and supervised contrast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from naysay.losses._blocks import soften
from naysay.losses._columns import Columns
from naysay.losses._slots import softplus


@final
@dataclass(frozen=True, slots=True, eq=False)
class Gather:
    """A form for `blockwise`: the mean over a row's positives of -log softmax.

    A row without a positive gives 0, and one without another column too.

    Args:
        labels: (G, N) and key_labels (G, M): columns of the row's own label are its positives; the mean over G.
        partner: (N,) a column that is a positive whatever its label, or None.
        apart: Whether a positive's denominator holds that positive and the negatives only, not the other positives.
    """

    columns: Columns
    labels: Tensor
    key_labels: Tensor
    partner: Tensor | None = None
    apart: bool = False

    def __call__(self, scores: Tensor, rows: slice, inputs: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Losses and gradients of a block; there are no row inputs."""
        hidden, bias = self.columns.hidden(rows), self.columns.log_weights(rows)
        blind = self.columns.blind(torch.zeros_like(scores), rows)  # -inf where a column can be nothing to a row
        if bias is not None:
            blind += bias
        if hidden is not None:
            blind.masked_fill_(hidden, -torch.inf)
        if self.partner is not None:
            blind[torch.arange(len(scores), device=scores.device), self.partner[rows]] = 0.0
        loss, gradient = scores.new_zeros(len(scores)), torch.zeros_like(scores)
        weights = blind.exp()
        for labels, key_labels in zip(self.labels[:, rows], self.key_labels, strict=True):
            positive = (labels[:, None] == key_labels) & (labels[:, None] >= 0)
            if self.partner is not None:
                positive[torch.arange(len(scores), device=scores.device), self.partner[rows]] = True
            share = weights * positive
            count = share.sum(dim=1, keepdim=True)
            share /= count.masked_fill(count == 0, 1.0)
            none = count[:, 0] == 0
            logits = (scores + blind).masked_fill_(positive, -torch.inf) if self.apart else scores + blind
            push, total = soften(logits)
            if self.apart:
                gap = push[:, None] - scores
                loss += (share * softplus(gap)).sum(dim=1)
                pulled = share.mul_(torch.sigmoid(gap))
                gradient += logits.mul_((pulled.sum(dim=1) / total)[:, None]).sub_(pulled)
            else:
                loss += push.masked_fill(none, 0.0) - (share * scores).sum(dim=1)
                gradient += logits.mul_((1.0 / total).masked_fill(none, 0.0)[:, None]).sub_(share)
        scores.copy_(gradient.div_(len(self.labels)))
        return loss / len(self.labels), None
