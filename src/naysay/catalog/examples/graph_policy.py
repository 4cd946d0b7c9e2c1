"""graph-policy: from the clicked item over an entity to another item; hard items are rewarded."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(0)
facts = np.stack([rng.integers(0, 200, 600), rng.integers(200, 230, 600)], axis=1)  # items 0 to 199 have entities
graph = ns.Positives.from_edges(facts, n_nodes=230)
users, items = rng.integers(0, (50, 200), size=(1000, 2)).T  # who clicked what
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=230)
table = rng.standard_normal((50, 230))  # a model's scores


def score(anchors, ids):
    return table[anchors[:, None], ids]


steps = ns.samplers.Factors(230, 230, d=8)
settings = {"positives": known, "start": "positive", "items": np.arange(230) < 200}
sampler = ns.samplers.GraphPolicy(graph, steps, score, hops=2, **settings)
query = ns.Query(users[:64], positives=items[:64])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
sampler.observe(query, negatives)
