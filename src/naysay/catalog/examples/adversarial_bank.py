"""adversarial-bank: a bank of vectors that learns to be hard; all of it beside the batch's own keys."""

import numpy as np
import torch

import naysay as ns

rng = np.random.default_rng(0)
known = ns.Positives.from_pairs([], [], n_anchors=64, n_items=256)  # rows of the bank are no items: nothing is known
views = torch.nn.functional.normalize(torch.from_numpy(rng.standard_normal((2, 64, 8))), dim=2)
sampler = ns.samplers.AdversarialBank(256, 8, step=1.0, temperature=0.1)
query = ns.Query(np.arange(64), vectors=views[0].numpy())
negatives = sampler.sample(query, 16, rng=ns.rng_for(seed=0))  # or all of sampler.vectors, for every row
keys = torch.cat([views[1], torch.from_numpy(sampler.vectors)])
loss = ns.losses.in_batch(views[0], keys, temperature=0.12)
sampler.observe(query, positive_scores=(views[0] * views[1]).sum(dim=1).numpy())
