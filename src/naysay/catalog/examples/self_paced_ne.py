"""Self-paced NE: nodes by the softmax of the score, but none above a probability that rises with the step."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(0)
edges = rng.integers(0, 80, size=(200, 2))
known = ns.Positives.from_edges(edges, n_nodes=80)
place = rng.standard_normal((80, 8))


def score(anchors, ids):
    return np.einsum("bd,bnd->bn", place[anchors], place[ids])


rising = ns.quantity.Linear(0.05, 1.0, steps=1000)  # at 1 it is the softmax alone
sampler = ns.samplers.Dynamic(ns.pools.Everything(known), score, candidates=40, temperature=1.0, ceiling=rising)
query = ns.Query(edges[:64, 0], positives=edges[:64, 1], step=100)
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
