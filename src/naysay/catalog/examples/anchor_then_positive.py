"""anchor, then positive: a shortlist by the anchor's scores, then the nearest to the positive."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(7)
users, items = rng.integers(0, (50, 200), size=(1000, 2)).T
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
of_user, of_item = rng.standard_normal((50, 8)), rng.standard_normal((200, 8))


def score(users, ids):  # (B,) and (B, n) to (B, n)
    return np.einsum("bd,bnd->bn", of_user[users], of_item[ids])


def similarity(items, ids):  # of the positive items to the candidates
    return np.einsum("bd,bnd->bn", of_item[items], of_item[ids])


pool = ns.pools.Everything(known)
sampler = ns.samplers.NearPositive(  # hard for the user, then similar to the clicked item
    pool, similarity, candidates=100, first=score, shortlist=20, limit=8.0
)
query = ns.Query(users[:64], positives=items[:64])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
