"""Losses without negatives, of two views (N, d) of the same rows: arms of a comparison, each one number.

They are no part of `naysay.losses`: there a loss has a value for each row, and most of these have none.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import mse_loss, normalize, relu

BARLOW_WEIGHT, VICREG_WEIGHT = 0.0051, 25  # as the papers have them
STANDARDISE_EPSILON, VARIANCE_EPSILON = 1e-5, 1e-4  # added to variances by Barlow Twins and by VICReg
CODE_TEMPERATURE, SWAV_TEMPERATURE, SINKHORN_ROUNDS = 0.05, 0.1, 3


def minus_cosine(predicted: Tensor, target: Tensor) -> Tensor:
    """Minus the mean cosine; the target takes no gradient.

    SimSiam minimises the mean of both directions. BYOL's 2 - 2 cos and BGRL's 2 - cos - cos have the same minimum.
    Chen and He. Exploring Simple Siamese Representation Learning. CVPR 2021.
    """
    return -(normalize(predicted, dim=1) * normalize(target.detach(), dim=1)).sum(dim=1).mean()


def barlow_twins(one: Tensor, other: Tensor) -> Tensor:
    """sum_i (1 - C_ii)^2 + weight sum_{i != j} C_ij^2, C the correlations of the coordinates of both views.

    Zbontar et al. Barlow Twins: Self-Supervised Learning via Redundancy Reduction. ICML 2021.
    """
    views = [(z - z.mean(dim=0)) / (z.var(dim=0, unbiased=False) + STANDARDISE_EPSILON).sqrt() for z in (one, other)]
    correlation = views[0].T @ views[1] / len(one)
    diagonal = correlation.diagonal()
    elsewhere = correlation.square().sum() - diagonal.square().sum()
    return (1 - diagonal).square().sum() + BARLOW_WEIGHT * elsewhere


def vicreg(one: Tensor, other: Tensor) -> Tensor:
    """25 mse + 25 mean relu(1 - deviation) / 2 of each view + sum_{i != j} cov_ij^2 / d of each view.

    Bardes, Ponce, LeCun. VICReg: Variance-Invariance-Covariance Regularization for Self-Supervised Learning. ICLR 2022.
    """
    loss = VICREG_WEIGHT * mse_loss(one, other)
    for z in (one, other):
        centred = z - z.mean(dim=0)
        covariance = centred.T @ centred / (len(z) - 1)
        variance = covariance.diagonal()
        loss = loss + VICREG_WEIGHT * relu(1 - (variance + VARIANCE_EPSILON).sqrt()).mean() / 2
        loss = loss + (covariance.square().sum() - variance.square().sum()) / z.shape[1]
    return loss


@torch.no_grad()
def codes(scores: Tensor, rounds: int = SINKHORN_ROUNDS) -> Tensor:
    """(N, K) soft assignments that sum to 1 for each row, and nearly to N / K for each prototype (Sinkhorn)."""
    mass = torch.exp((scores - scores.max()) / CODE_TEMPERATURE)
    for _ in range(rounds):
        mass = mass / mass.sum(dim=0, keepdim=True)
        mass = mass / mass.sum(dim=1, keepdim=True)
    return mass


def mean_of_label(vectors: Tensor, labels: Tensor) -> Tensor:
    """(N, d) vectors of length 1: the mean of those with the same label (N,), which then share a code; -1 is no label.

    Chen et al. Incremental False Negative Detection for Contrastive Learning. ICLR 2022, appendix F; that the mean gets
    length 1 is our reading.
    """
    itself = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    same = (labels[:, None] == labels) & (labels >= 0)[:, None] | itself
    return normalize(same.to(vectors.dtype) @ vectors, dim=1)


def swav(one: Tensor, other: Tensor, *, coded: Sequence[Tensor] = ()) -> Tensor:
    """The mean over both directions of the cross-entropy of one view's softmax and the other view's `codes`.

    Both are scores (N, K) against prototypes; codes are of `coded`, if given. Caron et al. Unsupervised Learning of
    Visual Features by Contrasting Cluster Assignments. NeurIPS 2020.
    """
    of_one, of_other = coded or (one, other)

    def cross_entropy(scores: Tensor, coded_scores: Tensor) -> Tensor:
        log_chances = torch.log_softmax(scores / SWAV_TEMPERATURE, dim=1)
        return -(codes(coded_scores) * log_chances).sum(dim=1).mean()

    return (cross_entropy(one, of_other) + cross_entropy(other, of_one)) / 2
