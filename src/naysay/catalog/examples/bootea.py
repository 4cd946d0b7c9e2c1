"""BootEA: epsilon-truncated: uniform over the ceil((1 - epsilon) N) nearest neighbours of the true entity."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(0)
triples = rng.integers(0, (50, 5, 50), size=(500, 3))
entities = rng.standard_normal((50, 8))  # vectors of a model
heads, tails = (ns.pools.Corruption(triples, sides=(side,)) for side in ("head", "tail"))
known = tails.known


def similarity(replaced, ids):
    return np.einsum("bd,bnd->bn", entities[replaced], entities[ids])


sampler = ns.samplers.Mixed(  # epsilon = 0.9 of 50 entities: the 5 nearest
    {
        "head": ns.samplers.NearPositive(heads, similarity, candidates=50, top_m=5),
        "tail": ns.samplers.NearPositive(tails, similarity, candidates=50, top_m=5),
    },
    shares=(0.5, 0.5),
)
query = ns.Query(triples[:64])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))  # negatives.side: which part is replaced
