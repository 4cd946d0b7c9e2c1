"""tie-walks: items of friends, and of friends of friends, that the user did not take."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(0)
users, items = rng.integers(0, (50, 200), size=(1000, 2)).T  # who clicked what
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
friends = ns.Positives.from_edges(rng.integers(0, 50, size=(150, 2)), n_nodes=50)
sampler = ns.samplers.Static(ns.pools.TieWalks(friends, known, stop=0.1, depth=5))
query = ns.Query(users[:64], positives=items[:64])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
