"""RocketQA: cross-batch: the passages of all processes. For its denoised hard negatives see detectors.Guide."""

import numpy as np
import torch

import naysay as ns

rng = np.random.default_rng(4)
queries, items = rng.integers(0, (200, 400), size=(600, 2)).T  # which passage answers which query
known = ns.Positives.from_pairs(queries, items, n_anchors=200, n_items=400)
pool = ns.pools.InBatch(known)
sampler = ns.samplers.Static(pool)
query = ns.Query(queries[:32], positives=items[:32])
negatives = sampler.sample(query, 31, rng=ns.rng_for(seed=0))  # B - 1 per row, fewer if some are positives
vectors = torch.from_numpy(rng.standard_normal((2, 32, 16)))  # an encoder's output
anchors, keys = torch.nn.functional.normalize(vectors, dim=2)
passages, first = ns.losses.gather_rows(keys)  # of all processes; here there is one
ids, _ = ns.losses.gather_rows(torch.from_numpy(items[:32]))
known_of = known.contains(queries[:32], np.tile(ids.numpy(), (32, 1)))
loss = ns.losses.in_batch(anchors, passages, partner=first + torch.arange(32), mask=~known_of, temperature=0.05)
