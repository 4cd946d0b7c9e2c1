"""CBNS: items of earlier batches beside those of this one, each corrected by how often it comes, after a warm-up."""

import numpy as np
import torch

import naysay as ns

rng = np.random.default_rng(2)
users, items = rng.integers(0, (200, 400), size=(608, 2)).T
known = ns.Positives.from_pairs(users, items, n_anchors=200, n_items=400)
of_user, of_item = (torch.from_numpy(rng.standard_normal((n, 16))) for n in (200, 400))
memory, frequency, warm_up = ns.pools.Memory(256, known), ns.pools.StreamingFrequency(400), 5
for step, rows in enumerate(np.split(np.arange(608), 19)):
    query = ns.Query(users[rows], positives=items[rows], step=step)
    frequency.observe(query, None)
    stored = memory.ids if step >= warm_up else items[:0]
    ids = np.concatenate([items[rows], stored])
    keys = of_item[ids] if not len(stored) else torch.cat([of_item[items[rows]], memory.vectors])
    mask = ~known.contains(users[rows], np.tile(ids, (len(rows), 1)))
    log_q = frequency.log_q(ids)
    loss = ns.losses.in_batch(of_user[users[rows]], keys, mask=mask, log_q=log_q)
    memory.observe(query, None, vectors=of_item[items[rows]])
