"""corruption: replaces head or tail of a triple by an entity that makes no known triple."""

import numpy as np

import naysay as ns

triples = np.random.default_rng(0).integers(0, (100, 5, 100), size=(2000, 3))
train, valid = triples[:1800], triples[1800:]
pool = ns.pools.Corruption(train, known=valid)
known, sampler = pool.known, ns.samplers.Static(pool)
query = ns.Query(train[:64])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))  # negatives.side: which part is replaced
