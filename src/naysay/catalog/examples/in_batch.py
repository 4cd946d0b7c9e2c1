"""in-batch: all items of the other rows of the batch, except positives of the anchor."""

import numpy as np
import torch

import naysay as ns

rng = np.random.default_rng(0)
queries, items = rng.integers(0, (200, 400), size=(600, 2)).T  # which document answers which query
known = ns.Positives.from_pairs(queries, items, n_anchors=200, n_items=400)
pool = ns.pools.InBatch(known)
sampler = ns.samplers.Static(pool)
query = ns.Query(queries[:32], positives=items[:32])
negatives = sampler.sample(query, 31, rng=ns.rng_for(seed=0))  # B - 1 per row, fewer if some are positives
vectors = torch.from_numpy(rng.standard_normal((2, 32, 16)))  # an encoder's output
anchors, keys = torch.nn.functional.normalize(vectors, dim=2)
loss = ns.losses.in_batch(anchors, keys, mask=pool.eligible(query), temperature=0.05)
