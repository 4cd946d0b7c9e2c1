"""SamWalker++: walks from user to item to user, where no social ties are known."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(1)
users, items = rng.integers(0, (50, 200), size=(1000, 2)).T  # who clicked what
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
ties, weights = ns.pools.consumption_ties(known)
sampler = ns.samplers.Static(ns.pools.TieWalks(ties, known, weights))
query = ns.Query(users[:64], positives=items[:64])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
