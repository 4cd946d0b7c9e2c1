"""MNS: the items of the batch and uniform ones of the whole corpus, corrected as one draw from their mixture."""

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
shared = rng.integers(0, 400, 16)  # B' items of the corpus, the same for all rows
ids = np.concatenate([items[:32], shared])
popular = known.item_counts()[ids] / len(known)  # how likely each is in a batch
with np.errstate(divide="ignore"):  # items without a click come from the corpus alone
    log_q = ns.losses.mixture_log_q([np.log(popular), np.full(48, -np.log(400))], [32, 16])
vectors = torch.nn.functional.normalize(torch.from_numpy(rng.standard_normal((80, 16))), dim=1)  # an encoder's output
mask = ~known.contains(users[:32], np.tile(ids, (32, 1)))
loss = ns.losses.in_batch(vectors[:32], vectors[32:], temperature=0.05, mask=mask, log_q=log_q)
