"""losses.info_nce: softmax cross-entropy of the positive among its negatives."""

import numpy as np
import torch

import naysay as ns

users, items = np.random.default_rng(0).integers(0, (50, 200), size=(1000, 2)).T  # who clicked what
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
sampler = ns.samplers.Static(ns.pools.Everything(known))
negatives = sampler.sample(ns.Query(users[:64], positives=items[:64]), 8, rng=ns.rng_for(seed=0))
rng = np.random.default_rng(1)
user, item = (torch.from_numpy(rng.standard_normal((n, 16))) for n in (50, 200))  # a model's embeddings
positive = (user[users[:64]] * item[items[:64]]).sum(dim=1)
scores = torch.einsum("bd,bkd->bk", user[users[:64]], item[negatives.ids])
loss = ns.losses.info_nce
values = loss(positive, scores, mask=negatives.mask)  # (64,), unreduced
