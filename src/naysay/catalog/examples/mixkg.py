"""MixKG: convex combinations of pairs of hard entities: hard by score, or by similarity to the true entity."""

import numpy as np

import naysay as ns

triples = np.random.default_rng(0).integers(0, (100, 5, 100), size=(2000, 3))
entities = np.random.default_rng(1).standard_normal((100, 8))
pool = ns.pools.Corruption(triples, sides=("tail",))


def embed(ids):
    return entities[ids]


known = pool.known
sampler = ns.samplers.MixKG(pool, None, embed, candidates=32, n_hard=8, by="entity")
query = ns.Query(triples[:64])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))  # negatives.vectors replace the tails' vectors
