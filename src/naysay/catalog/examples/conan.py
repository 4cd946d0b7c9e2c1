"""Conan: mined lists in which negatives that became easy are replaced by the next ones."""

from dataclasses import replace

import numpy as np

import naysay as ns

rng = np.random.default_rng(0)
queries, documents = rng.integers(0, (50, 200), size=(300, 2)).T  # which document answers which query
known = ns.Positives.from_pairs(queries, documents, n_anchors=50, n_items=200)
scores = rng.uniform(0.2, 0.9, (50, 200))
lists = np.argsort(-scores, axis=1)[:, :40]  # mined before training
pool = ns.pools.Fading(lists, np.take_along_axis(scores, lists, axis=1), active=8, positives=known)
sampler = ns.samplers.Static(pool)
query = ns.Query(queries[:64], positives=documents[:64], step=100)
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
now = 0.5 * scores[queries[:64, None], negatives.ids]  # by the model in training
pool.observe(query, replace(negatives, scores=now))
