"""softmax-weights: all candidates are used; a softmax gives hard ones a higher weight."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(8)
users, items = rng.integers(0, (50, 200), size=(1000, 2)).T
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
of_user, of_item = rng.standard_normal((50, 8)), rng.standard_normal((200, 8))


def score(users, ids):  # (B,) and (B, n) to (B, n)
    return np.einsum("bd,bnd->bn", of_user[users], of_item[ids])


pool = ns.pools.Everything(known, distinct=False)
sampler = ns.samplers.SoftmaxWeights(pool, score, rho=1.0)  # losses.bpr(weights=negatives.weights)
query = ns.Query(users[:64], positives=items[:64])
negatives = sampler.sample(query, 64, rng=ns.rng_for(seed=0))
