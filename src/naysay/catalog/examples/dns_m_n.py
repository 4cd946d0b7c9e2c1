"""DNS(M, N): one of the M highest of N candidates, uniformly; the published code sums the loss over all M."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(2)
users, items = rng.integers(0, (50, 200), size=(1000, 2)).T  # who clicked what
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
table = rng.standard_normal((50, 8)) @ rng.standard_normal((8, 200))  # a model's scores


def score(anchors, ids):
    return table[anchors[:, None], ids]


pool = ns.pools.Everything(known, distinct=False)
sampler = ns.samplers.Dynamic(pool, score, candidates=200, top_m=4)
query = ns.Query(users[:64], positives=items[:64])
negatives = sampler.sample(query, 1, rng=ns.rng_for(seed=0))
