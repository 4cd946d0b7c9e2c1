"""Gillick et al.: of the ten nearest entities, those that rank above the correct one."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(2)
mentions, correct = np.arange(200), rng.integers(0, 300, 200)  # the entity of each mention
known = ns.Positives.from_pairs(mentions, correct, n_items=300)
scores = rng.standard_normal((200, 8)) @ rng.standard_normal((8, 300))  # of the current model
best = np.argsort(-scores, axis=1)[:, :10]
above = np.take_along_axis(scores, best, axis=1) > scores[mentions, correct][:, None]
sampler = ns.samplers.Static(ns.pools.Local(np.where(above, best, -1), known))
query = ns.Query(mentions[:64], positives=correct[:64])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
