"""mixed-sources: a row's slots from several samplers, by shares that may change with the step."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(4)
users, items = rng.integers(0, (50, 200), size=(1000, 2)).T
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
of_user, of_item = rng.standard_normal((50, 8)), rng.standard_normal((200, 8))


def score(anchors, ids):
    return np.einsum("bd,bnd->bn", of_user[anchors], of_item[ids])


pool = ns.pools.Everything(known)
sampler = ns.samplers.Mixed(
    {"random": ns.samplers.Static(pool), "hard": ns.samplers.Dynamic(pool, score, candidates=32)}, shares=(0.5, 0.5)
)
query = ns.Query(users[:64], positives=items[:64])
negatives = sampler.sample(query, 8, rng=ns.rng_for(seed=0))  # negatives.source: which sampler
