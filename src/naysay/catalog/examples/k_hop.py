"""k-hop: nodes at an exact distance from the anchor, without the anchor and its neighbours."""

import numpy as np

import naysay as ns

sources, targets = np.random.default_rng(0).integers(0, 400, size=(2, 800))
known = ns.Positives.from_edges(sources, targets, 400)
sampler = ns.samplers.Static(ns.pools.KHop(known, hops=2))
query = ns.Query(sources[:64], positives=targets[:64])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
