"""weighted-walks: words that often occur near the anchor, except the word's own contexts of the batch."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(0)
near = rng.integers(0, 60, size=(900, 2))  # two words within a window
words = ns.Positives.from_edges(near, n_nodes=60, directed=True)
pairs, counts = np.unique(near[near[:, 0] != near[:, 1]], axis=0, return_counts=True)
known = ns.Positives.from_pairs(*pairs[::5].T, n_anchors=60, n_items=60)  # pairs that are trained as positives
edges = ns.Positives.from_pairs(*pairs.T, n_anchors=60, n_items=60)
sampler = ns.samplers.Static(ns.pools.WeightedWalks(edges, counts, length=2, positives=known))
query = ns.Query(pairs[:64:5, 0], positives=pairs[:64:5, 1])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
