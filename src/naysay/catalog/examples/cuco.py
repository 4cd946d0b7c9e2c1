"""CuCo: from easy to hard: the interval grows with the step."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(2)
users, items = rng.integers(0, (50, 200), size=(1000, 2)).T
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
of_user, of_item = rng.standard_normal((50, 8)), rng.standard_normal((200, 8))


def score(anchors, ids):
    return np.einsum("bd,bnd->bn", of_user[anchors], of_item[ids])


pool = ns.pools.InBatch(known)
sampler = ns.samplers.Ring(  # the easy ones first, all of them at the end
    pool, score, candidates=40, keep=(0.0, ns.quantity.Linear(0.25, 1.0, steps=1000))
)
query = ns.Query(users[:64], positives=items[:64], step=300)
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
