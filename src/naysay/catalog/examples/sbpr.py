"""SBPR: items of friends are negatives of own items, and positives against all that nobody near has taken."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(0)
users, items = rng.integers(0, (50, 200), size=(1000, 2)).T  # who clicked what
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
one, other = rng.integers(0, 50, size=(2, 100))  # friends
theirs = [
    (a, item) for a, b in zip(one, other, strict=True) for item in known.indices[known.indptr[b] : known.indptr[b + 1]]
]
social = ns.Positives.from_pairs(*np.array(theirs).T, n_anchors=50, n_items=200)
rest = ns.pools.Everything(known.union(social), distinct=False)
sampler = ns.samplers.Exposed({"own": known, "friends": social}, (1, 1), rest, share=0.5)
query = ns.Query(users[:64], positives=items[:64])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
