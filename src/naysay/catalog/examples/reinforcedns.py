"""ReinforcedNS: thirty candidates; what the model scores low and what was shown is rewarded."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(1)
users, items = rng.integers(0, (50, 200), size=(1000, 2)).T  # who clicked what
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
table = rng.standard_normal((50, 8)) @ rng.standard_normal((8, 200))  # a model's scores

shown = rng.random((50, 200)) < 0.1  # shown, and not clicked


def reward(anchors, ids):
    return -1 / (1 + np.exp(-table[anchors[:, None], ids])) + 2.5 * shown[anchors[:, None], ids]


generator = ns.samplers.Factors(50, 200, d=8)
pool = ns.pools.Everything(known)
sampler = ns.samplers.Learned(pool, generator, reward, candidates=30, baseline="running", slots=2)
query = ns.Query(users[:64], positives=items[:64])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
sampler.observe(query, negatives)
