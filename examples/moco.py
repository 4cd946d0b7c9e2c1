"""MoCo from end to end: negatives from a queue of keys that a slow copy of the encoder made.

Digits with random light (see simclr.py). Each step encodes 32 images twice, by the encoder and by its slow copy; the
negatives are the last 256 keys. Accuracy is that of the nearest of 100 labelled images. The queue has eight times the
negatives at no cost of encoding; for so few and simple images it gains nothing.

Prints:
    untrained 17 %
    batch of 32 60 %
    queue of 256 55 %
"""

import copy

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor
from torch.nn.functional import normalize

import naysay as ns

BATCH, STEPS, TEMPERATURE = 32, 150, 0.2
data, digits = (torch.from_numpy(part) for part in load_digits(return_X_y=True))
at = torch.linspace(-1, 1, 8, dtype=torch.float64)
planes = torch.stack([torch.ones(64, dtype=torch.float64), at.repeat(8), at.repeat_interleave(8)])
own_image = ns.Positives.from_pairs(np.arange(len(data)), np.arange(len(data)))  # an image is never its own negative


class Encoder(torch.nn.Module):
    """Two layers, and unit vectors."""

    def __init__(self, random: torch.Generator) -> None:
        super().__init__()
        sizes = ((64, 128), (128, 32))
        starts = [(2 / a) ** 0.5 * torch.randn(a, b, generator=random, dtype=torch.float64) for a, b in sizes]
        self.layers = torch.nn.ParameterList(starts)

    def forward(self, images: Tensor) -> Tensor:
        """(n, 32) of (n, 64)."""
        return normalize((images @ self.layers[0]).relu() @ self.layers[1], dim=1)


def accuracy(queue: int, steps: int) -> float:
    """Train with a queue of this size, 0 for the batch alone; accuracy of the nearest labelled image, in percent."""
    random = torch.Generator().manual_seed(0)  # not the global one

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=random, dtype=torch.float64)

    lit = data / 16 + normal(len(data), 3) @ planes
    fast = Encoder(random)
    slow = copy.deepcopy(fast)
    optimiser = torch.optim.Adam(fast.parameters(), lr=0.003)
    memory = ns.pools.Memory(queue or BATCH, own_image)
    sampler = ns.samplers.Static(memory)
    for step in range(steps):
        rows = torch.randperm(len(data), generator=random)[:BATCH]
        views = [lit[rows] + normal(BATCH, 3) @ planes + 0.1 * normal(BATCH, 64) for _ in range(2)]
        anchors = fast(views[0])
        with torch.no_grad():
            keys = slow(views[1])
        query = ns.Query(rows, positives=rows, step=step)
        if queue and step > queue // BATCH:
            negatives = sampler.sample(query, queue - BATCH, rng=ns.rng_for(seed=0, step=step))
            scores = torch.einsum("bd,bkd->bk", anchors, negatives.vectors)
            positive = (anchors * keys).sum(dim=1)
            loss = ns.losses.info_nce(positive, scores, temperature=TEMPERATURE, mask=negatives.mask)
        else:
            loss = ns.losses.in_batch(anchors, keys, temperature=TEMPERATURE)
        optimiser.zero_grad()
        loss.mean().backward()
        optimiser.step()
        ns.samplers.momentum_update(fast, slow, momentum=0.99)
        memory.observe(query, None, vectors=keys)
    with torch.no_grad():
        found = fast(lit)
    nearest = (found[1200:] @ found[:100].T).argmax(dim=1)
    return 100 * (digits[nearest] == digits[1200:]).double().mean().item()


if __name__ == "__main__":
    print(f"untrained {accuracy(0, 0):.0f} %")
    print(f"batch of {BATCH} {accuracy(0, STEPS):.0f} %")
    print(f"queue of 256 {accuracy(256, STEPS):.0f} %")
