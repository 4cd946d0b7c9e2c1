"""GDCL (in-batch): only rows of other clusters; the paper samples some of them."""

import numpy as np
import torch

import naysay as ns

n = 100  # nodes
views = np.arange(2 * n)  # view v shows node v % n
known = ns.Positives.from_pairs(np.tile(np.arange(n), 2), views)  # both views are positives of node i
pool = ns.pools.InBatch(known)
sampler = ns.samplers.Static(pool)
batch = np.arange(16)
query = ns.Query(np.tile(batch, 2), positives=np.concatenate([batch + n, batch]))  # each view's positive is the other
negatives = sampler.sample(query, 2 * len(batch) - 2, rng=ns.rng_for(seed=0))  # 2 (B - 1), the rest of the batch
rng = np.random.default_rng(8)
z = torch.from_numpy(rng.standard_normal((2 * len(batch), 16)))  # two views of each node
z, partner = torch.nn.functional.normalize(z, dim=1), np.roll(np.arange(len(z)), len(batch))
clusters = np.random.default_rng(0).integers(0, 8, 16)  # k-means clusters, updated during training
loss = ns.losses.in_batch(z, partner=partner, labels=np.tile(clusters, 2), temperature=0.5)
