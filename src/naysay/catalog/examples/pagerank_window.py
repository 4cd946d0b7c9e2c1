"""pagerank-window: nodes within a window of ranks by personalised PageRank: close, but not the closest."""

import numpy as np

import naysay as ns

sources, targets = np.random.default_rng(4).integers(0, 40, size=(2, 80))
known = ns.Positives.from_edges(sources, targets, 40)
sampler = ns.samplers.Static(ns.pools.PageRank(known, ranks=(0.1, 0.5)))
query = ns.Query(sources[:64], positives=targets[:64])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
