"""Spreading: a sample is found by its other view, and is not found by anything else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor

from naysay.checks import check_number, check_whole, public
from naysay.losses._blocks import BLOCK, Columns, blockwise, columns, soften
from naysay.losses._inputs import as_partner, as_temperature, as_vectors, computing_dtype
from naysay.losses._slots import softplus


@public
def spreading(
    z: Tensor, partner: Any, *, temperature: Any = 0.1, weight: float = 1.0, mask: Any = None, block: int = BLOCK
) -> Tensor:
    """Compute -log P(i' | i) - weight * sum over j other than i, i' of log(1 - P(j | i)).

    P(j | i) is the softmax of z_i.z_j / t over all rows but i; i' is the other view of i. weight=0 is NT-Xent. The
    second term pushes on every negative whose probability is not small, not only through the denominator. Time and
    memory are those of `in_batch`; exact also where a probability is close to 1.

    Ye, Zhang, Yuen, Chang. Unsupervised Embedding Learning via Invariant and Spreading Instance Feature. CVPR 2019.
    The paper sums log(1 - P(i | j)) over j, its code this form: both have the same total over a batch. The code also
    takes no gradient through the keys; here all vectors get theirs.

    Args:
        z: (N, d), used as given: normalise first for cosines.
        partner: (N,) i', the row of i's other view.
        temperature: t, above 0: a number, or a tensor of one number, which may be learned.
        weight: Of the second term, at least 0.
        mask: True where a column may be a negative: (N,), (N, N), or a function of a slice of rows.
        block: Scores in memory at once.

    Returns:
        (N,) losses, unreduced; 0 for a row with no negatives.

    Examples:
        >>> import torch
        >>> spreading(torch.eye(4), [1, 0, 3, 2], temperature=1.0)    # log 3 + 2 log 1.5
        tensor([1.9095, 1.9095, 1.9095, 1.9095])
    """
    check_number("weight", weight, at_least=0, finite=True)
    check_whole("block", block, 1)
    given = as_vectors("z", z)
    wide = given.to(computing_dtype(given))
    left = wide / as_temperature(temperature, given)
    pairs = as_partner(partner, len(wide), len(wide), wide.device, own=True)
    form = _Spread(columns(len(wide), len(wide), wide, own=True, mask=mask), pairs, float(weight))
    return blockwise(left, wide, None, form, block, "z").to(given.dtype)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Spread:
    """The form of this loss for `blockwise`."""

    columns: Columns
    partner: Tensor  # (N,)
    weight: float

    def __call__(self, scores: Tensor, rows: slice, inputs: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Return the losses of a block; its scores become the gradient.

        With r_j = P_j / (1 - P_j), the second term has the gradient P_k [k is not i'] - P_k sum over j != k of r_j.
        Only the largest P can be near 1; its r is taken times P_k at once, as P_top times the softmax without it.
        """
        here = torch.arange(len(scores), device=scores.device)
        partner, own = self.partner[rows], scores[here, self.partner[rows]]
        hidden = self.columns.hidden(rows)
        if hidden is not None:
            scores.masked_fill_(hidden, -torch.inf)
        self.columns.exclude_self(scores, rows)
        scores[here, partner] = own
        highest, top = scores.max(dim=1)
        scores -= highest[:, None]  # differences are exact where scores are close, however large
        own = own - highest
        rest = scores.clone()
        rest[here, top] = -torch.inf
        log_rest, rest_total = soften(rest)  # rest: e^{s - max} of all but the largest
        log_all = softplus(log_rest)
        chance = (scores - log_all[:, None]).exp()
        others = chance.clone()
        others[here, partner] = 0.0
        others[here, top] = 0.0  # all of these are at most 1/2
        top_is_negative = top != partner
        far = torch.log1p(-others).sum(dim=1) + (log_rest - log_all).masked_fill(~top_is_negative, 0.0)
        loss = log_all - own - self.weight * far
        odds = others / (1.0 - others)
        pushed = chance * (1.0 - (odds.sum(dim=1, keepdim=True) - odds))
        from_top = (chance[here, top] / rest_total).masked_fill(~top_is_negative, 0.0)
        pushed -= rest * from_top[:, None]
        pushed[here, partner] -= chance[here, partner]  # the partner is no negative
        scores.copy_(chance + self.weight * pushed)
        scores[here, partner] -= 1.0
        alone = log_rest == -torch.inf
        scores.masked_fill_(alone[:, None], 0.0)
        return loss.masked_fill(alone, 0.0), None
