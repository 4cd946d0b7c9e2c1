"""Losses: several on the same scores, and a batch with false negatives, kept, eliminated and attracted.

Two views of 300 images in 30 clusters. Images of one cluster are false negatives of each other: plain InfoNCE pushes
them apart; elimination does not, so their views bring them closer; attraction does so directly.

Prints:
    bpr 1.58, info_nce 1.10, without the guide's false negative 0.74
    plain      loss 3.97, cosine of false negatives after a step -0.026
    eliminated loss 3.08, cosine of false negatives after a step +0.160
    attracted  loss 4.02, cosine of false negatives after a step +0.237
"""

import numpy as np
import torch

import naysay as ns


def main() -> None:
    """Slots first, then a batch of vectors."""
    positive, negatives = torch.tensor([1.0]), torch.tensor([[0.9, 0.2, -0.4, 0.1]])
    slots = [
        ns.losses.bpr(positive, negatives),
        ns.losses.info_nce(positive, negatives),
        ns.losses.gist(positive, negatives, guide_positive=[0.8], guide_negatives=[[0.9, 0, 0, 0]], temperature=1.0),
    ]
    bpr, info_nce, gist = map(float, slots)
    print(f"bpr {bpr:.2f}, info_nce {info_nce:.2f}, without the guide's false negative {gist:.2f}")

    rng = np.random.default_rng(0)
    clusters = np.tile(np.repeat(np.arange(30), 10), 2)
    centres = torch.from_numpy(rng.standard_normal((30, 32)))
    z = centres[clusters] + torch.from_numpy(rng.standard_normal((600, 32)))
    z = torch.nn.functional.normalize(z, dim=1).requires_grad_()
    partner = np.roll(np.arange(600), 300)
    nobody = np.full(600, -1)
    false = torch.from_numpy(clusters[:, None] == clusters)  # the same cluster, but neither oneself nor the other view
    false[np.arange(600), np.arange(600)] = false[np.arange(600), partner] = False
    before = (z @ z.T)[false].mean().item()
    for name, loss, labels in (
        ("plain", ns.losses.eliminate, nobody),
        ("eliminated", ns.losses.eliminate, clusters),
        ("attracted", ns.losses.attract, clusters),
    ):
        values = loss(z, partner, labels, temperature=0.1)
        moved = torch.nn.functional.normalize(z - 0.05 * torch.autograd.grad(values.sum(), z)[0], dim=1)
        change = (moved @ moved.T)[false].mean().item() - before
        print(f"{name:10s} loss {values.mean().item():.2f}, cosine of false negatives after a step {change:+.3f}")


if __name__ == "__main__":
    main()
