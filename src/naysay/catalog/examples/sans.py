"""SANS: corrupt a triple with an entity near the end that is kept."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(3)
triples = rng.integers(0, (60, 4, 60), size=(200, 3))
known = ns.Triples(triples, n_entities=60, n_relations=4)
sampler = ns.samplers.Static(ns.pools.KHop(known, hops=(1, 2)))
query = ns.Query(triples[:64])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))  # negatives.side: 0 for heads, 2 for tails
