"""Smart mining: negatives at a gap below the positive that keeps the share of violating triplets at a third."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(0)
users, items = rng.integers(0, (50, 200), size=(1000, 2)).T  # who clicked what
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
table = rng.standard_normal((50, 8)) @ rng.standard_normal((8, 200))  # a model's scores


def score(anchors, ids):
    return table[anchors[:, None], ids]


gap, margin, wanted, shares = 4.0, 1.0, 1 / 3, []
sampler = ns.samplers.NearTarget(ns.pools.Everything(known), score, 16, lambda own, step: own - gap)
for step in range(200):
    rows = rng.integers(0, 1000, 64)
    query = ns.Query(users[rows], positives=items[rows], step=step)
    negatives = sampler.sample(query, 1, rng=ns.rng_for(seed=0, step=step))
    violates = score(query.anchors, negatives.ids)[:, 0] > table[users[rows], items[rows]] - margin
    gap = float(np.clip(gap * (1.1 if violates.mean() > wanted else 0.9), 0.01, 10))  # harder while few violate
    shares.append(violates.mean())
