"""VaSCL: only the nearest rows of the batch, and a virtual copy of each sentence that is hard to tell from them."""

import numpy as np
import torch

import naysay as ns

known = ns.Positives.from_pairs(np.arange(100), np.arange(100))  # a sentence, encoded again, is its positive
sampler = ns.samplers.Static(ns.pools.InBatch(known))
batch = np.arange(32)
query = ns.Query(batch, positives=batch)
negatives = sampler.sample(query, len(batch) - 1, rng=ns.rng_for(seed=0))  # B - 1, the rest of the batch
z = torch.nn.functional.normalize(torch.from_numpy(np.random.default_rng(13).standard_normal((32, 16))), dim=1)
near = (z @ z.T).fill_diagonal_(-np.inf).topk(4, dim=1).indices  # the neighbourhood of each sentence in the batch
mask = torch.zeros(32, 32, dtype=torch.bool).scatter_(1, near, True)


def neighbourhood(virtual):
    return ns.losses.in_batch(virtual, z, temperature=0.05, mask=mask)  # scores are dot products


radius = 0.5  # 15 in the paper, whose vectors have any length
start = torch.nn.functional.normalize(ns.samplers.noise(32, 16, rng=ns.rng_for(seed=0), like=z), dim=1)
way = ns.samplers.ascend(z + radius * start, neighbourhood, steps=1, size=1.0) - (z + radius * start)  # of length 1
virtual = z + radius * way
loss = neighbourhood(virtual) + ns.losses.in_batch(z, virtual, temperature=0.05, mask=mask)
