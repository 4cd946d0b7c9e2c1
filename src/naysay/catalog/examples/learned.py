"""learned: a generator proposes items, and learns which of them the model takes for positives."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(0)
users, items = rng.integers(0, (50, 200), size=(1000, 2)).T  # who clicked what
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
table = rng.standard_normal((50, 8)) @ rng.standard_normal((8, 200))  # a model's scores


def score(anchors, ids):
    return table[anchors[:, None], ids]


generator = ns.samplers.Factors(50, 200, d=8, rate=1.0)
sampler = ns.samplers.Learned(ns.pools.Everything(known), generator, ("sigmoid", score))
for step in range(20):
    query = ns.Query(users[:64], positives=items[:64], step=step)
    negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0, step=step))
    sampler.observe(query, negatives)  # a step of the generator, after the model's
