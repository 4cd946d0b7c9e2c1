"""uniform: any item that is not a known positive of the anchor, all with the same probability."""

import numpy as np

import naysay as ns

users, items = np.random.default_rng(0).integers(0, (50, 200), size=(1000, 2)).T
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
sampler = ns.samplers.Static(ns.pools.Everything(known))
query = ns.Query(users[:64], positives=items[:64])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
