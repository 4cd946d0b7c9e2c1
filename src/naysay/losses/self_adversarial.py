"""Self-adversarial negative sampling: the model's own scores say how much each negative counts."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from naysay.checks import check_number, is_number, public, raise_invalid, shown
from naysay.losses._slots import slots, softplus


@public
def self_adversarial(
    positive: Tensor,
    negatives: Tensor,
    *,
    alpha: float = 1.0,
    margin: float = 0.0,
    mask: Any = None,
    weights: Any = None,
) -> Tensor:
    """(-log sigmoid(f_p) - sum_j a_j log sigmoid(-f_j)) / 2, (B,), with f = margin + score.

    The authors' subsampling weight is one factor for a row: multiply the answer by it. A row with no negatives gives 0.

    Sun, Deng, Nie, Tang. RotatE: Knowledge Graph Embedding by Relational Rotation in Complex Space. ICLR 2019.

    Args:
        positive: (B,) scores, minus a distance for TransE or RotatE.
        negatives: (B, K) scores.
        alpha: How sharp: a_j = w_j e^{alpha f_j} / sum_i w_i e^{alpha f_i}, without gradient; 0 is the mean.
        margin: Gamma of the paper, so that distances above it are taken for false triples.
        mask: (B, K) bool, True where a slot counts.
        weights: (B, K), at least 0.

    Example:
        >>> import torch
        >>> self_adversarial(torch.tensor([0.0]), torch.tensor([[0.0, 0.0]]))    # log 2
        tensor([0.6931])
    """
    check_number("alpha", alpha, at_least=0, finite=True)
    if not is_number(margin) or not abs(margin) < float("inf"):
        raise_invalid("margin", "a finite number", shown(margin))
    ready = slots(positive, negatives, mask, weights)
    pull, push = ready.positive + margin, ready.negatives + margin
    sharp = alpha * push.detach()
    share = ready.weights * (sharp - ready.log_sum(sharp)[:, None]).masked_fill(~ready.kept, 0.0).exp()
    return ready.answer((softplus(-pull) + (share * softplus(push)).sum(dim=1)) / 2)
