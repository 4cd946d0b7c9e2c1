"""Adversarial self-paced NE: a generator learns what is hard; its nodes are drawn below a rising probability."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(0)
edges = rng.integers(0, 80, size=(200, 2))
known, place = ns.Positives.from_edges(edges, n_nodes=80), rng.standard_normal((80, 8))
generator, pool = ns.samplers.Factors(80, 80, d=8), ns.pools.Everything(known)


def score(anchors, ids):
    return np.einsum("bd,bnd->bn", place[anchors], place[ids])


def informative(anchors, ids):
    return generator.logits(anchors, ids)


teacher = ns.samplers.Learned(pool, generator, ("softplus", score))
rising = ns.quantity.Linear(0.1, 1.0, steps=1000)
sampler = ns.samplers.Dynamic(pool, informative, candidates=40, temperature=1.0, ceiling=rising)
query = ns.Query(edges[:64, 0], positives=edges[:64, 1], step=100)
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
teacher.observe(query)  # the generator learns from the model's scores
