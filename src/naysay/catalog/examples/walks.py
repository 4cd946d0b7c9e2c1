"""walks: ends of random walks from the anchor: near nodes, more often those with many paths."""

import numpy as np

import naysay as ns

sources, targets = np.random.default_rng(2).integers(0, 400, size=(2, 800))
known = ns.Positives.from_edges(sources, targets, 400)
sampler = ns.samplers.Static(ns.pools.Walks(known, length=3))
query = ns.Query(sources[:64], positives=targets[:64])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
