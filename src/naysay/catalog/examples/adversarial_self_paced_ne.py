"""Adversarial self-paced NE: a generator over nodes whose temperature falls, so that harder nodes come later."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(0)
edges = rng.integers(0, 80, size=(200, 2))
known = ns.Positives.from_edges(edges, n_nodes=80)
place = rng.standard_normal((80, 8))


def score(anchors, ids):
    return np.einsum("bd,bnd->bn", place[anchors], place[ids])


generator = ns.samplers.Factors(80, 80, d=8)
colder = ns.quantity.Linear(5.0, 0.5, steps=1000)
sampler = ns.samplers.Learned(ns.pools.Everything(known), generator, ("softplus", score), temperature=colder)
query = ns.Query(edges[:64, 0], positives=edges[:64, 1], step=100)
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
sampler.observe(query, negatives)
