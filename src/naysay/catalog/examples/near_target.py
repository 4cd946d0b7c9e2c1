"""near-target: candidates that score about as high as the positive, neither the hardest nor the easiest (SimANS)."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(0)
queries, documents = rng.integers(0, (50, 200), size=(1000, 2)).T
known = ns.Positives.from_pairs(queries, documents, n_anchors=50, n_items=200)
table = rng.standard_normal((50, 8)) @ rng.standard_normal((8, 200))  # a model's scores


def score(anchors, ids):
    return table[anchors[:, None], ids]


def target(own, step):  # a little below the positive's score
    return own - 0.1


pool = ns.pools.Everything(known)
sampler = ns.samplers.NearTarget(pool, score, candidates=100, target=target, sharpness=0.5)
query = ns.Query(queries[:64], positives=documents[:64])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
