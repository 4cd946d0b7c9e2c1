"""Kanojia et al.: corruptions from a list of possible entities with probability beta, any entity otherwise."""

import numpy as np

import naysay as ns

triples = np.random.default_rng(4).integers(0, (100, 5, 100), size=(2000, 3))
listed = ns.pools.Corruption(triples, domains="observed", ranges="observed")  # or a list for each relation
known = listed.known
beta = 0.25  # how often an entity comes from the list
sampler = ns.samplers.Mixed(
    {"listed": ns.samplers.Static(listed), "any": ns.samplers.Static(ns.pools.Corruption(triples))},
    shares=(beta, 1 - beta),
)
query = ns.Query(triples[:64])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
