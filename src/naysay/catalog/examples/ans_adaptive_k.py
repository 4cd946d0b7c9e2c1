"""ANS (adaptive k): the number of negatives changes with the step: quantity.adaptive."""

import numpy as np

import naysay as ns

users, items = np.random.default_rng(5).integers(0, (50, 200), size=(1000, 2)).T
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
sampler = ns.samplers.Static(ns.pools.Everything(known))
k_at, step = ns.quantity.adaptive(peak=12, steps=1000), 400  # 1 to 12 and back to 1; quantity.estimate gives the peak
query = ns.Query(users[:64], positives=items[:64], step=step)
negatives = sampler.sample(query, k_at(step), rng=ns.rng_for(seed=0, step=step))
