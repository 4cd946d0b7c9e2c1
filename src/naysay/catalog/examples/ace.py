"""ACE: half of the words by popularity, half from a generator with a floor of its entropy."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(2)
users, items = rng.integers(0, (50, 200), size=(1000, 2)).T  # who clicked what
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
table = rng.standard_normal((50, 8)) @ rng.standard_normal((8, 200))  # a model's scores


def score(anchors, ids):
    return table[anchors[:, None], ids]


noise = ns.samplers.Static(ns.pools.Everything(known, ns.pools.popularity(known) + 1, distinct=False))
hard = ns.samplers.Learned(
    ns.pools.Everything(known), ns.samplers.Factors(50, 200), score, baseline="greedy", entropy_floor=8, slots=2
)
both = {"noise": noise, "learned": hard}
sampler = ns.samplers.Mixed(both, shares=(0.5, 0.5), duplicates="keep", one_draw=True)  # log_q is exact
query = ns.Query(users[:64], positives=items[:64])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
hard.observe(query, negatives)
