"""KBGAN: a DistMult generator chooses one of 20 corruptions; the model's score is its reward."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(0)
train = np.unique(rng.integers(0, (60, 4, 60), size=(300, 3)), axis=0)
pool = ns.pools.Corruption(train, n_entities=60, choice="bernoulli")
known = pool.known
place = rng.standard_normal((60, 8))


def score(triples, corrupted):
    return -np.linalg.norm(place[corrupted[..., 0]] - place[corrupted[..., 2]], axis=-1)


generator = ns.samplers.TripleFactors(60, 4, d=8, kind="distmult")
sampler = ns.samplers.Learned(pool, generator, ("score", score), candidates=20, baseline="running")
for step in range(5):
    query = ns.Query(train[:64], step=step)
    negatives = sampler.sample(query, 1, rng=ns.rng_for(seed=0, step=step))
    sampler.observe(query, negatives)
sampler.update()  # after each epoch: the mean reward is the next baseline
