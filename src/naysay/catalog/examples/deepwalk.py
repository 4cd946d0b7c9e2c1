"""DeepWalk: nodes by (visits of uniform random walks)^0.75. This is the review's reading."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(0)
sources, targets = rng.integers(0, 300, size=(2, 1500))  # a graph
known = ns.Positives.from_edges(sources, targets, 300)
visits = np.zeros(300)
for step in range(1, 6):  # where 20 uniform walks per node are after each step
    ends = ns.pools.Walks(known, length=step).endpoints(np.arange(300), 20, rng=ns.rng_for(0, step))
    visits += np.bincount(ends[ends >= 0], minlength=300)
weights = ns.pools.popularity(visits, 0.75)  # visits^0.75
sampler = ns.samplers.Static(ns.pools.Everything(known, weights, distinct=False))
query = ns.Query(sources[:64], positives=targets[:64])
negatives = sampler.sample(query, 5, rng=ns.rng_for(seed=0))
