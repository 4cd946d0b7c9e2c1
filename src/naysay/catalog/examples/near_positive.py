"""near-positive: candidates that are similar to the positive; the anchor's scores are not used."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(4)
users, items = rng.integers(0, (50, 200), size=(1000, 2)).T
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
of_item = rng.standard_normal((200, 8))  # item vectors of a model


def similarity(items, ids):  # of the positive items to the candidates
    return np.einsum("bd,bnd->bn", of_item[items], of_item[ids])


pool = ns.pools.Everything(known)
sampler = ns.samplers.NearPositive(pool, similarity, candidates=64, temperature=2.0)
query = ns.Query(users[:64], positives=items[:64])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
