"""DCLR: without rows that a second model scores above a threshold, and with noise that ascends the loss."""

import numpy as np
import torch

import naysay as ns

n = 100  # sentences
views = np.arange(2 * n)  # view v shows sentence v % n
known = ns.Positives.from_pairs(np.tile(np.arange(n), 2), views)  # both views are positives of sentence i
pool = ns.pools.InBatch(known)
sampler = ns.samplers.Static(pool)
batch = np.arange(16)
query = ns.Query(np.tile(batch, 2), positives=np.concatenate([batch + n, batch]))  # each view's positive is the other
negatives = sampler.sample(query, 2 * len(batch) - 2, rng=ns.rng_for(seed=0))  # 2 (B - 1), the rest of the batch
unit, vectors = torch.nn.functional.normalize, np.random.default_rng(9).standard_normal((2, 32, 16))
z, judge = unit(torch.from_numpy(vectors), dim=2)  # two encodings of each sentence, and a second model's


def with_noise(noise):
    keys = torch.cat([z, unit(noise, dim=1)])  # row i of the batch is key i; its other view is its positive
    mask = torch.cat([(judge @ judge.T < 0.85).fill_diagonal_(False), torch.ones(32, len(noise), dtype=bool)], dim=1)
    return ns.losses.in_batch(z, keys, partner=np.roll(np.arange(32), 16), temperature=0.05, mask=mask)


loss = with_noise(ns.samplers.ascend(ns.samplers.noise(32, 16, rng=ns.rng_for(seed=0), like=z), with_noise))
