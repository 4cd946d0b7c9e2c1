"""Forms for `blockwise`: one positive against the other columns (`Contrast`), or several (`Gather`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor

from naysay.losses._blocks import Columns, soften
from naysay.losses._slots import softplus
from naysay.losses.debiased import log_true_mean


@final
@dataclass(frozen=True, slots=True, eq=False)
class Contrast:
    """The losses of `info_nce`, `debiased` and `hardness` over columns.

    All scores are taken from the positive's: differences are exact where scores are close, however large. Row inputs,
    if any: the lowest possible one; then, if the row has negatives of its own beside the columns, the log sums over
    them of e^{(1 + beta) s}, of e^{beta s}, and of 1. Prior, beta and backprop_weights are those of `hardness`.
    """

    columns: Columns
    partner: Tensor  # (N,) the column of each row's positive
    labels: Tensor | None = None  # (G, N): columns with the row's own label are left out; the mean over G
    key_labels: Tensor | None = None  # (G, M)
    prior: float = 0.0
    beta: float = 0.0
    backprop_weights: bool = True
    form: str = "sampled"  # of `sampled_softmax`
    positive_log_q: Tensor | None = None  # (N,)

    def __call__(self, scores: Tensor, rows: slice, inputs: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Return the losses of a block and their gradients in the row inputs."""
        partner = self.partner[rows]
        here = torch.arange(len(scores), device=scores.device)
        hidden, bias = self.columns.hidden(rows), self.columns.log_weights(rows)
        positive = scores[here, partner]
        if bias is not None:  # before large scores take up the logarithms of weights
            scores -= positive[:, None]
            positive = torch.zeros_like(positive)
        if self.labels is None or self.key_labels is None:
            loss, by_positive, by_inputs = self._granularity(scores, rows, hidden, bias, positive, inputs)
        else:
            parts, gradient = [], torch.zeros_like(scores)
            for labels, key_labels in zip(self.labels[:, rows], self.key_labels, strict=True):
                same = (labels[:, None] == key_labels) & (labels[:, None] >= 0)
                work = scores.clone()
                left_out = same if hidden is None else same | hidden
                parts.append(self._granularity(work, rows, left_out, bias, positive, inputs))
                gradient += work
            scores.copy_(gradient.div_(len(parts)))
            loss, by_positive = (torch.stack([part[i] for part in parts]).mean(dim=0) for i in (0, 1))
            by_inputs = None if inputs is None else torch.stack([part[2] for part in parts]).mean(dim=0)
        scores[here, partner] = by_positive
        return loss, by_inputs

    def _granularity(
        self,
        scores: Tensor,
        rows: slice,
        hidden: Tensor | None,
        bias: Tensor | None,
        positive: Tensor,
        inputs: Tensor | None,
    ) -> tuple[Tensor, Tensor, Any]:
        """Losses (rows,), their gradients in the positive and in the inputs; `scores` become the gradient in them."""
        tilted = self._weighted(self.beta * scores, rows, hidden, bias) if self.beta else None
        logits = self._weighted(scores.mul_(1 + self.beta) if self.beta else scores, rows, hidden, bias)
        drawn = self._drawn(rows, hidden, scores) if self.columns.log_q is not None else 0.0
        log_sum, total = soften(logits, (1 + self.beta) * positive)
        log_base, base_total = soften(tilted, self.beta * positive) if tilted is not None else (None, None)
        count = self._log_count(rows, hidden, bias, scores) if self.beta or self.prior else log_sum
        if self.positive_log_q is not None:
            own = self.positive_log_q[rows]
            log_sum = log_sum + (own + drawn if self.form == "classic" else (-torch.expm1(own)).log())
        loss, by_log_sum, by_log_base, by_inputs = self._head(
            log_sum - drawn, count - drawn if log_base is None else log_base - drawn, count - drawn, inputs
        )
        if self.form == "refined":  # the gradient of "sampled", and another value: sg(1 - P) (log sum - p)
            loss = (torch.sigmoid(log_sum - drawn) * log_sum).masked_fill(log_sum == -torch.inf, 0.0)
        logits.mul_((by_log_sum / total)[:, None])
        if tilted is not None and base_total is not None and self.backprop_weights:
            logits.mul_(1 + self.beta).add_(tilted.mul_((self.beta * by_log_base / base_total)[:, None]))
            by_log_sum = (1 + self.beta) * by_log_sum + self.beta * by_log_base
        return loss, -by_log_sum, by_inputs

    def _weighted(self, logits: Tensor, rows: slice, hidden: Tensor | None, bias: Tensor | None) -> Tensor:
        """Add the log weights, and set columns that are not negatives of the row to -inf."""
        if bias is not None:
            logits += bias
        if hidden is not None:
            logits.masked_fill_(hidden, -torch.inf)
        return self.columns.exclude_self(logits, rows, self.partner[rows])

    def _drawn(self, rows: slice, hidden: Tensor | None, like: Tensor) -> Tensor:
        """(rows,) log K_b: how many columns are negatives of the row."""
        return self._log_count(rows, hidden, None, like).clamp_min(0.0)

    def _log_count(self, rows: slice, hidden: Tensor | None, bias: Tensor | None, like: Tensor) -> Tensor:
        """(rows,) log of the sum of the weights."""
        if hidden is None and bias is None:
            alone = 2 if self.columns.own else 1
            return torch.full_like(like[:, 0], self.columns.size - alone).log()
        return torch.logsumexp(self._weighted(torch.zeros_like(like), rows, hidden, bias), dim=1)

    def _head(
        self, log_sum: Tensor, log_base: Tensor, count: Tensor, inputs: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """Losses from log sums (rows,), and the gradients in log_sum, log_base and inputs."""
        given = (log_sum, log_base) if inputs is None else (log_sum, log_base, inputs)
        leaves = [value.detach().clone() for value in given]
        empty = log_sum == -torch.inf
        if inputs is not None and len(inputs) > 1:
            empty &= inputs[1] == -torch.inf
        with torch.enable_grad():
            for leaf in leaves:
                leaf.requires_grad_()
            log_sum, log_base, count = (value.masked_fill(empty, 0.0) for value in (leaves[0], leaves[1], count))
            if inputs is not None and len(inputs) > 1:
                sums = zip((log_sum, log_base, count), leaves[2][1:], strict=True)
                log_sum, log_base, count = (torch.logaddexp(one, other) for one, other in sums)
            if inputs is not None and (self.prior or self.beta):
                log_sum = count + log_true_mean(log_sum - log_base, self.prior, leaves[2][0])
            loss = softplus(log_sum).masked_fill(empty, 0.0)
            gradients = torch.autograd.grad(loss.sum(), leaves, allow_unused=True)
        by = [torch.zeros_like(leaf) if grad is None else grad for leaf, grad in zip(leaves, gradients, strict=True)]
        return loss.detach(), by[0], by[1], None if inputs is None else by[2]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Gather:
    """The mean over a row's positives of -log softmax; 0 for a row without a positive or without other columns."""

    columns: Columns
    labels: Tensor  # (G, N): columns with the row's own label are its positives; the mean over G
    key_labels: Tensor  # (G, M)
    partner: Tensor | None = None  # (N,) a column that is a positive whatever its label
    apart: bool = False  # the denominator of a positive has the negatives and that positive, not the other positives

    def __call__(self, scores: Tensor, rows: slice, inputs: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Return the losses of a block; there are no row inputs."""
        hidden, bias = self.columns.hidden(rows), self.columns.log_weights(rows)
        log_weights = self.columns.exclude_self(torch.zeros_like(scores), rows)
        if bias is not None:
            log_weights += bias
        if hidden is not None:
            log_weights.masked_fill_(hidden, -torch.inf)
        if self.partner is not None:
            log_weights[torch.arange(len(scores), device=scores.device), self.partner[rows]] = 0.0
        top = (scores + log_weights).amax(dim=1, keepdim=True)  # differences are exact where scores are close
        scores -= top.masked_fill(top == -torch.inf, 0.0)
        loss, gradient = scores.new_zeros(len(scores)), torch.zeros_like(scores)
        weights = log_weights.exp()
        for labels, key_labels in zip(self.labels[:, rows], self.key_labels, strict=True):
            positive = (labels[:, None] == key_labels) & (labels[:, None] >= 0)
            if self.partner is not None:
                positive[torch.arange(len(scores), device=scores.device), self.partner[rows]] = True
            share = weights * positive
            count = share.sum(dim=1, keepdim=True)
            share /= count.masked_fill(count == 0, 1.0)
            none = count[:, 0] == 0
            logits = (scores + log_weights).masked_fill_(positive, -torch.inf) if self.apart else scores + log_weights
            log_sum, total = soften(logits)
            if self.apart:
                gap = log_sum[:, None] - scores
                loss += (share * softplus(gap)).sum(dim=1)
                by_positive = share.mul_(torch.sigmoid(gap))
                gradient += logits.mul_((by_positive.sum(dim=1) / total)[:, None]).sub_(by_positive)
            else:
                loss += log_sum.masked_fill(none, 0.0) - (share * scores).sum(dim=1)
                gradient += logits.mul_((1.0 / total).masked_fill(none, 0.0)[:, None]).sub_(share)
        scores.copy_(gradient.div_(len(self.labels)))
        return loss / len(self.labels), None
