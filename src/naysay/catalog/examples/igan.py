"""IGAN: a perceptron of head and relation gives every tail a probability."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(0)
train = np.unique(rng.integers(0, (60, 4, 60), size=(300, 3)), axis=0)
pool = ns.pools.Corruption(train, n_entities=60, sides=("tail",), distinct=False)
known = pool.known
place, kind = rng.standard_normal((60, 8)), rng.standard_normal((4, 8))


def score(triples, corrupted):
    return -np.linalg.norm(place[corrupted[..., 0]] - place[corrupted[..., 2]], axis=-1)


def asked(triples):
    return np.concatenate([place[triples[:, 0]], kind[triples[:, 1]]], axis=1)


sampler = ns.samplers.Learned(pool, ns.samplers.Perceptron(asked, 16, 60, hidden=16), ("score", score))
query = ns.Query(train[:64])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
sampler.observe(query, negatives)
