"""SimCSE: each sentence is encoded twice with different dropout: the second encodings of the B - 1 other sentences."""

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
rng = np.random.default_rng(1)
z = torch.from_numpy(rng.standard_normal((2 * len(batch), 16)))  # each sentence twice, with different dropout
z, partner = torch.nn.functional.normalize(z, dim=1), np.roll(np.arange(len(z)), len(batch))
first, second = z[:16], z[16:]
loss = ns.losses.in_batch(first, second, temperature=0.05)  # the second encodings of the others
