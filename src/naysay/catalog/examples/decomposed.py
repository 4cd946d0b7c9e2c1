"""decomposed: two small tables propose items, and follow the model's scores from epoch to epoch."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(0)
users, items = rng.integers(0, (50, 200), size=(1000, 2)).T  # who clicked what
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
table = rng.standard_normal((50, 8)) @ rng.standard_normal((8, 200))  # a model's scores


def score(anchors, ids):
    return table[anchors[:, None], ids]


sampler = ns.samplers.Decomposed(known, factors=16)
sampler.update(score)  # once an epoch
query = ns.Query(users[:64], positives=items[:64])
negatives = sampler.sample(query, 5, rng=ns.rng_for(seed=0))
soft = np.logaddexp(0.0, score(users[:64], negatives.ids)) / 0.5 - negatives.log_q
weights = np.exp(soft - soft.max(axis=1, keepdims=True))
weights /= weights.sum(axis=1, keepdims=True)  # for losses.sampled_bce
