"""ANS (clusters): entities of the same cluster as the replaced one, uniformly."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(3)
triples = rng.integers(0, (50, 5, 50), size=(500, 3))
pool = ns.pools.Corruption(triples)
known = pool.known
clusters = rng.integers(0, 8, 50)  # k-means clusters of the entities


def similarity(replaced, ids):
    return 1.0 * (clusters[replaced][:, None] == clusters[ids])


sampler = ns.samplers.NearPositive(pool, similarity, candidates=80)  # the same cluster first, in random order
query = ns.Query(triples[:64])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))  # negatives.side: which part is replaced
