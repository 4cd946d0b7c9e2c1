"""Cai et al.: removes the hardest, all or those of one class, and refills; or keeps only the hardest 5 %."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(1)
users, items = rng.integers(0, (50, 200), size=(1000, 2)).T
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
of_user, of_item = rng.standard_normal((50, 8)), rng.standard_normal((200, 8))


def score(anchors, ids):
    return np.einsum("bd,bnd->bn", of_user[anchors], of_item[ids])


pool = ns.pools.Everything(known)
sampler = ns.samplers.Ring(  # removes those of one class from the hardest
    pool, score, candidates=32, remove=(0.9, 1.0), refill=True, where=lambda query, ids: ids % 7 == 0
)
query = ns.Query(users[:64], positives=items[:64])
negatives = sampler.sample(query, 32, rng=ns.rng_for(seed=0))
