"""pytorch-metric-learning: a sampler as its miner, a loss as its loss, and its miner as a sampler.

Prints:
    semi-hard triplets: the loss fell
    BatchHardMiner as a sampler: (32, 1) negatives, of other classes
"""

from functools import partial

import numpy as np
import torch
from pytorch_metric_learning.miners import BatchHardMiner

import naysay as ns
from naysay.integrations.metric_learning import MinerSampler, SamplerMiner, SlotLoss

rng = np.random.default_rng(0)
labels = torch.from_numpy(np.arange(32) % 8)
points = torch.from_numpy(rng.normal(size=(32, 16))).requires_grad_()
miner = SamplerMiner(lambda pool, score: ns.samplers.SemiHard(pool, score, 24, margin=0.5, otherwise="hardest"), k=4)
loss = SlotLoss(partial(ns.losses.hard_negative_nce, beta=0.5, temperature=0.2))
losses = []
for _ in range(20):
    value = loss(points, labels, miner(points, labels))
    (gradient,) = torch.autograd.grad(value, points)
    points = (points - gradient).detach().requires_grad_()
    losses.append(value.item())
print("semi-hard triplets: the loss", "fell" if losses[-1] < losses[0] else "did not fall")

sampler = MinerSampler(BatchHardMiner(), labels)
negatives = sampler.sample(ns.Query(np.arange(32), vectors=points), 1, rng=ns.rng_for(0))
others = (labels[negatives.ids] != labels[:, None]).all()
print(f"BatchHardMiner as a sampler: {negatives.shape} negatives,", "of other classes" if others else "some wrong")
