"""VaSCL: only the nearest rows of the batch, and a virtual copy of each sentence that is hard to tell from them."""

import numpy as np
import torch

import naysay as ns

n = 100  # sentences
known = ns.Positives.from_pairs(np.arange(n), np.arange(n))  # a sentence, encoded a second time, is its positive
pool = ns.pools.InBatch(known)
sampler = ns.samplers.Static(pool)
batch = np.arange(32)
query = ns.Query(batch, positives=batch)
negatives = sampler.sample(query, len(batch) - 1, rng=ns.rng_for(seed=0))  # B - 1, the rest of the batch
z = torch.from_numpy(np.random.default_rng(13).standard_normal((len(batch), 16)))  # encodings, of any length
near = (z @ z.T).fill_diagonal_(-np.inf).topk(4, dim=1).indices  # the neighbourhood of each sentence in the batch
mask = torch.zeros(32, 32, dtype=torch.bool).scatter_(1, near, True)


def neighbourhood(virtual):
    return ns.losses.in_batch(virtual, z, temperature=0.05, mask=mask)  # scores are dot products


start = torch.nn.functional.normalize(ns.samplers.noise(32, 16, rng=ns.rng_for(seed=0), like=z), dim=1)
way = ns.samplers.ascend(z + 15.0 * start, neighbourhood, steps=1, size=1.0) - (z + 15.0 * start)  # of length 1
loss = neighbourhood(z + 15.0 * way) + ns.losses.in_batch(z, z + 15.0 * way, temperature=0.05, mask=mask)
