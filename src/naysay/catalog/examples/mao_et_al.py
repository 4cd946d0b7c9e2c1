"""Mao et al.: candidates are the items of the batch."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(10)
users, items = rng.integers(0, (50, 200), size=(1000, 2)).T
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
of_user, of_item = rng.standard_normal((50, 8)), rng.standard_normal((200, 8))


def score(users, ids):  # (B,) and (B, n) to (B, n)
    return np.einsum("bd,bnd->bn", of_user[users], of_item[ids])


pool = ns.pools.InBatch(known)
sampler = ns.samplers.SemiHard(pool, score, candidates=63, margin=2.0, choose="random")
query = ns.Query(users[:64], positives=items[:64])
negatives = sampler.sample(query, 1, rng=ns.rng_for(seed=0))
