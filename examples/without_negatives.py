"""Are negatives needed at all: two steps of one's own that have none, beside all other images of the batch.

Images are stripes of four directions, with noise. SimSiam predicts one view from the other. SwAV predicts which of 30
prototypes the other view is assigned to; here images of one cluster, which `detectors.Incremental` finds, share their
assignment (Chen et al. Incremental False Negative Detection for Contrastive Learning. ICLR 2022, appendix F; that the
mean of a cluster gets length 1 is our reading). Neither learns much in so few steps.

Prints:
    in-batch  negatives batch  k-NN accuracy 0.65
    SimSiam   negatives none   k-NN accuracy 0.33
    SwAV      negatives none   k-NN accuracy 0.33
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity, normalize

import naysay as ns

TRAINED = 320  # images


def matrix(width: int) -> nn.Parameter:
    """A random matrix (64, width), without the global generator."""
    return nn.Parameter(torch.randn(64, width, generator=torch.Generator().manual_seed(0)) / 8)


class SimSiam:
    """Minus the mean cosine of a predictor of one view and the other view, which takes no gradient."""

    negatives_used = "none"

    def __init__(self, parts: Mapping[str, Any]) -> None:
        """Add the predictor to the network, so that it is trained, too."""
        self.network, self.views = parts["network"], parts["views"]
        self.network.predictor = matrix(64)

    def __call__(self, rows: Any, k: int, *, step: int) -> tuple[Tensor, None]:
        """The loss of a step, and no negatives."""
        a, b = (self.network(view) for view in self.views(rows, step))
        one_way = cosine_similarity(a @ self.network.predictor, b.detach())
        other_way = cosine_similarity(b @ self.network.predictor, a.detach())
        return -(one_way + other_way).mean() / 2, None


@torch.no_grad()
def codes(scores: Tensor) -> Tensor:
    """Soft assignments (N, K) that sum to 1 for each row, and nearly to N / K for each prototype (Sinkhorn)."""
    mass = torch.exp((scores - scores.max()) / 0.05)
    for _ in range(3):
        mass = mass / mass.sum(dim=0, keepdim=True)
        mass = mass / mass.sum(dim=1, keepdim=True)
    return mass


def mean_of_label(vectors: Tensor, labels: Tensor) -> Tensor:
    """The mean vector, of length 1, of all rows with the same label; -1 is no label."""
    itself = torch.eye(len(labels), dtype=torch.bool)
    same = (labels[:, None] == labels) & (labels >= 0)[:, None] | itself
    return normalize(same.float() @ vectors, dim=1)


class SwAV:
    """Cross-entropy of one view's softmax over prototypes and the other view's codes, in both directions."""

    negatives_used = "none"

    def __init__(self, parts: Mapping[str, Any]) -> None:
        """Add the prototypes to the network."""
        self.network, self.views = parts["network"], parts["views"]
        self.network.prototypes = matrix(30)
        self.detector = ns.detectors.Incremental(TRAINED, (4,), seed=0)

    def __call__(self, rows: Any, k: int, *, step: int) -> tuple[Tensor, None]:
        """The loss of a step, and no negatives; half of the cluster labels are accepted from step 8 on."""
        a, b = (self.network(view) for view in self.views(rows, step))
        if step == 8:
            every_image = self.network(self.views(np.arange(TRAINED), step)[0])
            self.detector.update(every_image.detach().numpy(), progress=0.5)
        labels = torch.from_numpy(self.detector.labels[0, rows])
        directions = normalize(self.network.prototypes, dim=0)
        loss = torch.zeros(())
        for view, other in ((a, b), (b, a)):
            assigned = codes(mean_of_label(other.detach(), labels) @ directions)
            log_chances = torch.log_softmax(view @ directions / 0.1, dim=1)
            loss = loss - (assigned * log_chances).sum(dim=1).mean() / 2
        return loss, None


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    classes, at = rng.integers(0, 4, 400), np.arange(12)
    angle = np.pi / 4 * classes[:, None, None]
    waves = np.sin(1.2 * (np.cos(angle) * at + np.sin(angle) * at[:, None]) + rng.uniform(0, 7, (400, 1, 1)))
    images = np.clip(0.5 + 0.15 * waves + 0.25 * rng.standard_normal(waves.shape), 0, 1)
    methods = {"in-batch": None, "SimSiam": SimSiam, "SwAV": SwAV}
    found = ns.compare(ns.lab.Images(images, classes), task="images", methods=methods, steps=12, seeds=1)
    for arm in found.arms:
        print(f"{arm.name:9} negatives {arm.k:<6} k-NN accuracy {found.mean(arm).mean:.2f}")
