"""NSCaching: a cache of heads for each (relation, tail), and one of tails for each (head, relation)."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(3)
triples = rng.integers(0, (60, 4, 60), size=(300, 3))
known = ns.Triples(triples, n_entities=60, n_relations=4)
entity, relation = rng.standard_normal((60, 8)), rng.standard_normal((4, 8))


def score(triples, corrupted):  # TransE
    head, of, tail = (corrupted[..., part] for part in range(3))
    return -np.abs(entity[head] + relation[of] - entity[tail]).sum(-1)


pool = ns.pools.Corruption(known, choice="bernoulli")
sampler = ns.samplers.Cached(pool, score, size=30, fresh=30)
for step in range(10):
    query = ns.Query(triples[:64], step=step)
    negatives = sampler.sample(query, 1, rng=ns.rng_for(seed=0, step=step))
    sampler.observe(query, negatives)
