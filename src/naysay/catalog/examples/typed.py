"""typed: corruption by entities that occur on that side of the relation: plausible, so harder."""

import numpy as np

import naysay as ns

triples = np.random.default_rng(4).integers(0, (100, 5, 100), size=(2000, 3))
train, valid = triples[:1800], triples[1800:]
pool = ns.pools.Corruption(train, known=valid, domains="observed", ranges="observed")
known, sampler = pool.known, ns.samplers.Static(pool)
query = ns.Query(train[:64])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))  # negatives.side: which part is replaced
