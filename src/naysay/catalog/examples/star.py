"""STAR: the nearest items by a first model, and random ones that keep training stable."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(7)
users, items = rng.integers(0, (50, 200), size=(1000, 2)).T
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
of_user, of_item = rng.standard_normal((50, 8)), rng.standard_normal((200, 8))  # of the first model, never updated

hard = ns.pools.Nearest(of_item, 50, known, queries=of_user, metric="dot")
sampler = ns.samplers.Mixed(
    {"random": ns.samplers.Static(ns.pools.Everything(known)), "hard": ns.samplers.Static(hard)}, shares=(0.5, 0.5)
)
query = ns.Query(users[:64], positives=items[:64])
negatives = sampler.sample(query, 8, rng=ns.rng_for(seed=0))
