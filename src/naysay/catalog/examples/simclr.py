"""SimCLR: two views of each image: 2 (B - 1) negatives."""

import numpy as np
import torch

import naysay as ns

n = 100  # images
views = np.arange(2 * n)  # view v shows image v % n
known = ns.Positives.from_pairs(np.tile(np.arange(n), 2), views)  # both views are positives of image i
pool = ns.pools.InBatch(known)
sampler = ns.samplers.Static(pool)
batch = np.arange(16)
query = ns.Query(np.tile(batch, 2), positives=np.concatenate([batch + n, batch]))  # each view's positive is the other
negatives = sampler.sample(query, 2 * len(batch) - 2, rng=ns.rng_for(seed=0))  # 2 (B - 1), the rest of the batch
rng = np.random.default_rng(0)
z = torch.from_numpy(rng.standard_normal((2 * len(batch), 16)))  # the encoder's output for each view
z, partner = torch.nn.functional.normalize(z, dim=1), np.roll(np.arange(len(z)), len(batch))
loss = ns.losses.in_batch(z, partner=partner, temperature=0.2)
