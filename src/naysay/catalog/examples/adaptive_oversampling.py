"""adaptive-oversampling: items that rank high on a factor that is large for the anchor; no item is scored."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(0)
users, items = rng.integers(0, (50, 200), size=(1000, 2)).T
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
of_user, of_item = rng.standard_normal((50, 8)), rng.standard_normal((200, 8))


def embed(anchors):
    return of_user[anchors]


sampler = ns.samplers.AdaptiveOversampling(known, of_item, embed, scale=20.0)
query = ns.Query(users[:64], positives=items[:64])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
if sampler.due:  # after n log n draws
    sampler.update(of_item)
