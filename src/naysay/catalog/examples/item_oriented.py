"""item-oriented: items with few positives more often: a missing pair is more likely to be a true negative there."""

import numpy as np

import naysay as ns

users, items = np.random.default_rng(0).integers(0, (50, 200), size=(1000, 2)).T
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
sampler = ns.samplers.Static(ns.pools.Everything(known, ns.pools.item_oriented(known)))
query = ns.Query(users[:64], positives=items[:64])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
