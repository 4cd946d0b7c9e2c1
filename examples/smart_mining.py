"""Smart mining (Harwood et al.), in outline: the difficulty of negatives follows the share of triplets that violate.

A negative is taken at a gap below the positive's score. The gap shrinks (harder negatives) while fewer than a third of
the triplets violate the margin, and grows while more do. The model is trained meanwhile, so that the same gap becomes
easier, and the gap falls. The controller is this script's, not the paper's, which was not found.

Prints:
    step   0: gap 1.00, 100 % violate
    step  50: gap 1.08, 7 % violate
    step 100: gap 0.87, 27 % violate
    step 150: gap 0.09, 5 % violate
"""

import numpy as np
import torch
from torch import Tensor

import naysay as ns

USERS, ITEMS, MARGIN, WANTED = 100, 300, 1.0, 1 / 3
world = ns.planted_world(USERS, ITEMS, 16, per_anchor=10, known_share=0.8)
users, items = map(torch.from_numpy, world.known.pairs())
random = torch.Generator().manual_seed(0)  # not the global one
user, item = (0.1 * torch.randn(n, 16, generator=random, dtype=torch.float64) for n in (USERS, ITEMS))
optimiser = torch.optim.Adam([user.requires_grad_(), item.requires_grad_()], lr=0.02)
gap = 1.0


def score(anchors: Tensor, ids: Tensor) -> Tensor:
    """Of users (B,) and items (B, n)."""
    return torch.einsum("bd,bnd->bn", user[anchors], item[ids])


def main() -> None:
    """Train, and follow the gap."""
    global gap
    pool = ns.pools.Everything(world.known)
    sampler = ns.samplers.NearTarget(pool, score, 32, lambda own, step: own - gap)
    for step in range(200):
        rng = ns.rng_for(seed=0, step=step)
        rows = torch.from_numpy(rng.integers(0, len(users), 256))
        query = ns.Query(users[rows], positives=items[rows], step=step)
        negatives = sampler.sample(query, 1, rng=rng)
        positive, scores = score(users[rows], items[rows][:, None])[:, 0], score(users[rows], negatives.ids)
        violating = (scores[:, 0] > positive - MARGIN).double().mean().item()
        if step % 50 == 0:
            print(f"step {step:3d}: gap {gap:.2f}, {violating:.0%} violate".replace("%", " %"))
        optimiser.zero_grad()
        ns.losses.hinge(positive, scores, margin=MARGIN, mask=negatives.mask).mean().backward()
        optimiser.step()
        gap = float(np.clip(gap * (1.1 if violating > WANTED else 0.95), 0.01, 10))


if __name__ == "__main__":
    main()
