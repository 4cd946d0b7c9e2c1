"""One positive against the rest of a batch, in blocks: plain, eliminated, debiased and hardness-weighted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from naysay.losses._blocks import soften
from naysay.losses._columns import Columns
from naysay.losses._slots import softplus
from naysay.losses.debiased import log_true_mean


@final
@dataclass(frozen=True, slots=True, eq=False)
class Contrast:
    """A form for `blockwise`: the losses of `info_nce`, `debiased` and `hardness` over columns.

    Row inputs: the lowest logit there can be; then, if the row has negatives of its own beside the columns, the log
    sums of theirs: of e^{(1 + beta) s}, of e^{beta s}, and of 1.

    Args:
        partner: (N,) the column of each row's positive.
        labels: (G, N) and key_labels (G, M), or None: columns of the row's own label are left out; the mean over G.
        prior: As in `hardness`.
        beta: As in `hardness`.
        through: As in `hardness`.
    """

    columns: Columns
    partner: Tensor
    labels: Tensor | None = None
    key_labels: Tensor | None = None
    prior: float = 0.0
    beta: float = 0.0
    through: bool = True

    def __call__(self, scores: Tensor, rows: slice, inputs: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Losses and gradients of a block."""
        partner = self.partner[rows]
        here = torch.arange(len(scores), device=scores.device)
        pull = scores[here, partner]
        hidden, bias = self.columns.hidden(rows), self.columns.log_weights(rows)
        if self.labels is None or self.key_labels is None:
            loss, by_pull, by_inputs = self._one(scores, rows, hidden, bias, pull, inputs)
            scores[here, partner] = by_pull
            return loss, by_inputs
        found, gradient = [], torch.zeros_like(scores)
        for labels, key_labels in zip(self.labels[:, rows], self.key_labels, strict=True):
            same = (labels[:, None] == key_labels) & (labels[:, None] >= 0)
            work = scores.clone()
            found.append(self._one(work, rows, same if hidden is None else same | hidden, bias, pull, inputs))
            work[here, partner] = found[-1][1]
            gradient += work
        scores.copy_(gradient.div_(len(found)))
        by_inputs = None if inputs is None else torch.stack([one[2] for one in found if one[2] is not None]).mean(dim=0)
        return torch.stack([one[0] for one in found]).mean(dim=0), by_inputs

    def _one(
        self,
        scores: Tensor,
        rows: slice,
        hidden: Tensor | None,
        bias: Tensor | None,
        pull: Tensor,
        inputs: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """The losses (rows,), their gradients in the positive and in the inputs; `scores` turn into theirs."""
        tilted = self._ready(self.beta * scores, rows, hidden, bias) if self.beta else None
        logits = self._ready(scores.mul_(1 + self.beta) if self.beta else scores, rows, hidden, bias)
        drawn = self._drawn(rows, hidden, scores) if self.columns.log_q is not None else 0.0
        push, total = soften(logits)
        base, base_total = soften(tilted) if tilted is not None else (None, None)
        count = self._log_count(rows, hidden, bias, scores) if self.beta or self.prior else push
        loss, by_push, by_base, by_pull, by_inputs = self._head(
            push - drawn, count - drawn if base is None else base - drawn, count - drawn, pull, inputs
        )
        logits.mul_((by_push / total)[:, None])
        if tilted is not None and base_total is not None and self.through:
            logits.mul_(1 + self.beta).add_(tilted.mul_((self.beta * by_base / base_total)[:, None]))
        return loss, by_pull, by_inputs

    def _ready(self, logits: Tensor, rows: slice, hidden: Tensor | None, bias: Tensor | None) -> Tensor:
        """Logits with their weights, -inf where a column is no negative of the row."""
        if bias is not None:
            logits += bias
        if hidden is not None:
            logits.masked_fill_(hidden, -torch.inf)
        return self.columns.blind(logits, rows, self.partner[rows])

    def _drawn(self, rows: slice, hidden: Tensor | None, like: Tensor) -> Tensor:
        """(rows,) log K_b: how many columns are negatives of the row."""
        return self._log_count(rows, hidden, None, like).clamp_min(0.0)

    def _log_count(self, rows: slice, hidden: Tensor | None, bias: Tensor | None, like: Tensor) -> Tensor:
        """(rows,) log of the sum of the weights."""
        if hidden is None and bias is None:
            alone = 2 if self.columns.own else 1
            return torch.full_like(like[:, 0], self.columns.size - alone).log()
        return torch.logsumexp(self._ready(torch.zeros_like(like), rows, hidden, bias), dim=1)

    def _head(
        self, push: Tensor, base: Tensor, count: Tensor, pull: Tensor, inputs: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor | None]:
        """From log sums (rows,) to losses, and the gradients in push, base, pull and inputs."""
        leaves = [value.detach().clone() for value in (push, base, pull)]
        if inputs is not None:
            leaves.append(inputs.detach().clone())
        more = inputs is not None and len(inputs) > 1
        empty = (push == -torch.inf) & (inputs[1] == -torch.inf) if inputs is not None and more else push == -torch.inf
        with torch.enable_grad():
            for leaf in leaves:
                leaf.requires_grad_()
            push, base, count = (value.masked_fill(empty, 0.0) for value in (leaves[0], leaves[1], count))
            pull = leaves[2]
            if more:
                sums = zip((push, base, count), leaves[3][1:], strict=True)
                push, base, count = (torch.logaddexp(one, other) for one, other in sums)
            if self.prior or self.beta:
                push = count + log_true_mean(push - base, pull, self.prior, leaves[3][0])
            loss = softplus(push - pull).masked_fill(empty, 0.0)
            found = torch.autograd.grad(loss.sum(), leaves, allow_unused=True)
        by = [torch.zeros_like(leaf) if grad is None else grad for leaf, grad in zip(leaves, found, strict=True)]
        return loss.detach(), by[0], by[1], by[2], by[3] if inputs is not None else None
