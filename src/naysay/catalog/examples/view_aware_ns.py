"""View-aware NS: viewed and unobserved items, by shares."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(8)
users, items = rng.integers(0, (50, 300), size=(600, 2)).T  # who bought what
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=300)
viewed = [rng.integers(0, 300, 30) for _ in range(50)]  # viewed, but not bought
views = ns.Positives.from_pairs(np.repeat(np.arange(50), 30), np.concatenate(viewed), n_anchors=50, n_items=300)
sampler = ns.samplers.Mixed(
    {
        "viewed": ns.samplers.Static(ns.pools.Local(viewed, known)),
        "unobserved": ns.samplers.Static(ns.pools.Everything(known.union(views))),
    },
    shares=(0.4, 0.6),
)
query = ns.Query(users[:64], positives=items[:64])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
