"""Yi et al.: with log_q, which corrects for popular items; the paper corrects the positive too."""

import numpy as np
import torch

import naysay as ns

rng = np.random.default_rng(2)
users, items = rng.integers(0, (200, 400), size=(600, 2)).T  # who watched what
known = ns.Positives.from_pairs(users, items, n_anchors=200, n_items=400)
pool = ns.pools.InBatch(known)
sampler = ns.samplers.Static(pool)
query = ns.Query(users[:32], positives=items[:32])
negatives = sampler.sample(query, 31, rng=ns.rng_for(seed=0))  # B - 1 per row, fewer if some are positives
vectors = torch.from_numpy(rng.standard_normal((2, 32, 16)))  # an encoder's output
anchors, keys = torch.nn.functional.normalize(vectors, dim=2)
share = known.item_counts()[items[:32]] / len(known)  # the probability of each item in a batch
loss = ns.losses.in_batch(anchors, keys, mask=pool.eligible(query), log_q=np.log(share))
