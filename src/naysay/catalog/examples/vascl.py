"""VaSCL: only the nearest rows of the batch; the paper's virtual positives are not implemented."""

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
rng = np.random.default_rng(13)
z = torch.from_numpy(rng.standard_normal((2 * len(batch), 16)))  # two encodings of each
z, partner = torch.nn.functional.normalize(z, dim=1), np.roll(np.arange(len(z)), len(batch))
near = (z @ z.T).fill_diagonal_(-1.0).topk(4, dim=1).indices  # the neighbourhood of each sentence in the batch
mask = torch.zeros(32, 32, dtype=torch.bool).scatter_(1, near, True)
loss = ns.losses.in_batch(z, partner=partner, temperature=0.05, mask=mask)
