"""nearest-neighbour sampling: entities near the replaced one, by a model trained before."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(5)
triples = rng.integers(0, (50, 5, 50), size=(500, 3))
entities = rng.standard_normal((50, 8))  # vectors of a model
pool = ns.pools.Corruption(triples)
known = pool.known


def similarity(replaced, ids):
    return np.einsum("bd,bnd->bn", entities[replaced], entities[ids])


sampler = ns.samplers.NearPositive(pool, similarity, candidates=80)
query = ns.Query(triples[:64])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))  # negatives.side: which part is replaced
