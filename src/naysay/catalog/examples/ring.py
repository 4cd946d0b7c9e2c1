"""ring: keeps or removes an interval of difficulty among an anchor's candidates; k of what is left."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(0)
users, items = rng.integers(0, (50, 200), size=(1000, 2)).T
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
of_user, of_item = rng.standard_normal((50, 8)), rng.standard_normal((200, 8))


def score(anchors, ids):
    return np.einsum("bd,bnd->bn", of_user[anchors], of_item[ids])


pool = ns.pools.Everything(known)
sampler = ns.samplers.Ring(pool, score, candidates=100, keep=(0.8, 0.95))  # hard, but not the hardest
query = ns.Query(users[:64], positives=items[:64])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
