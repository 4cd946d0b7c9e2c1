"""FNC (in-batch): without rows that any support view is close to (elimination); for attraction see losses.attract."""

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
rng = np.random.default_rng(10)
z = torch.from_numpy(rng.standard_normal((2 * len(batch), 16)))  # two views of each
z, partner = torch.nn.functional.normalize(z, dim=1), np.roll(np.arange(len(z)), len(batch))
support = torch.from_numpy(rng.standard_normal((8, 32, 16)))  # eight more views of each, not trained on
support = torch.nn.functional.normalize(support, dim=2)
similarity = torch.einsum("snd,md->snm", support, z).amax(dim=0)  # the highest over the views of row i
false = (similarity > 0.7) & (similarity >= similarity.topk(10, dim=1).values[:, -1:])
loss = ns.losses.in_batch(z, partner=partner, temperature=0.1, mask=~false)
