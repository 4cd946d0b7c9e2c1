"""near-miss sampling: corrupted triples that the model scores highest."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(1)
triples = rng.integers(0, (50, 5, 50), size=(500, 3))
entities, relations = rng.standard_normal((50, 8)), rng.standard_normal((5, 8))
pool = ns.pools.Corruption(triples)
known = pool.known


def score(triples, corrupted):  # TransE
    head, relation, tail = np.moveaxis(corrupted, -1, 0)
    return -np.linalg.norm(entities[head] + relations[relation] - entities[tail], axis=-1)


sampler = ns.samplers.Dynamic(pool, score, candidates=64)
query = ns.Query(triples[:64])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))  # negatives.side: which part is replaced
