"""Yi et al.: scores minus the log of how often an item comes, which is estimated as the data stream by."""

import numpy as np
import torch

import naysay as ns

rng = np.random.default_rng(2)
users, items = rng.integers(0, (200, 400), size=(608, 2)).T  # who watched what
known = ns.Positives.from_pairs(users, items, n_anchors=200, n_items=400)
pool = ns.pools.InBatch(known)
sampler = ns.samplers.Static(pool)
frequency = ns.pools.StreamingFrequency(400, rate=0.05)
for step, rows in enumerate(np.split(np.arange(608), 19)):  # the steps of an epoch
    query = ns.Query(users[rows], positives=items[rows], step=step)
    negatives = sampler.sample(query, 31, rng=ns.rng_for(0, step))  # B - 1 per row, fewer if some are positives
    frequency.observe(query, negatives)
log_q = frequency.log_q(query.positives)
vectors = torch.from_numpy(rng.standard_normal((2, 32, 16)))  # an encoder's output
anchors, keys = torch.nn.functional.normalize(vectors, dim=2)
loss = ns.losses.in_batch(
    anchors, keys, temperature=0.05, mask=pool.eligible(query), log_q=log_q, positive_log_q=log_q, form="classic"
)
