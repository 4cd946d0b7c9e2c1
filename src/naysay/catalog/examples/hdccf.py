"""HDCCF: users against the batch's items and items against its users, each debiased by a prior."""

import numpy as np
import torch

import naysay as ns

rng = np.random.default_rng(2)
users, items = rng.integers(0, (200, 400), size=(600, 2)).T  # who watched what
known = ns.Positives.from_pairs(users, items, n_anchors=200, n_items=400)
pool = ns.pools.InBatch(known)
sampler = ns.samplers.Static(pool)
query = ns.Query(users[:32], positives=items[:32])
negatives = sampler.sample(query, 31, rng=ns.rng_for(seed=0))
vectors = torch.from_numpy(rng.standard_normal((2, 32, 16)))  # an encoder's output
of_user, of_item = torch.nn.functional.normalize(vectors, dim=2)
may = torch.from_numpy(pool.eligible(query))
loss = ns.losses.in_batch(of_user, of_item, temperature=0.2, prior=0.05, mask=may)
loss = (loss + ns.losses.in_batch(of_item, of_user, temperature=0.2, prior=0.05, mask=may.T)) / 2
