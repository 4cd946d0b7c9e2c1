"""losses.sampled_softmax: a softmax over all items, estimated from a sample with known probabilities."""

import functools

import numpy as np
import torch

import naysay as ns

users, items = np.random.default_rng(0).integers(0, (50, 200), size=(1000, 2)).T  # who clicked what
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
pool = ns.pools.Everything(known, ns.pools.popularity(known), distinct=False)  # frequent items more often
negatives = ns.samplers.Static(pool).sample(ns.Query(users[:64]), 8, rng=ns.rng_for(seed=0))
rng = np.random.default_rng(1)
user, item = (torch.from_numpy(rng.standard_normal((n, 16))) for n in (50, 200))  # a model's embeddings
positive = (user[users[:64]] * item[items[:64]]).sum(dim=1)
scores = torch.einsum("bd,bkd->bk", user[users[:64]], item[negatives.ids])
loss = functools.partial(ns.losses.sampled_softmax, form="sampled")
values = loss(positive, scores, log_q=negatives.log_q, mask=negatives.mask)  # as if all items had been scored
