"""SRNS: of a user's cached items, the one whose score is high and varied over the last epochs."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(4)
users, items = rng.integers(0, (50, 200), size=(1000, 2)).T
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
tables = rng.standard_normal((5, 50, 200))  # the model's scores, epoch by epoch


def score(anchors, ids):
    return tables[epoch][anchors[:, None], ids]


bonus = ns.quantity.Linear(0.0, 5.0, steps=50 * 16)
sampler = ns.samplers.Cached(
    ns.pools.Everything(known), score, 8, 64, temperature=10.0, choose="top", history=5, bonus=bonus
)
query = ns.Query(users[:16], positives=items[:16], step=400)
for epoch in range(5):
    negatives = sampler.sample(query, 1, rng=ns.rng_for(seed=0, step=epoch))
    sampler.observe(query, negatives)
    sampler.update()
