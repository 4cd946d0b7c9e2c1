"""Bootstrapping: train, find negatives that score above a positive, add them to the lists, until there are no more."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(0)
users, items = rng.integers(0, (50, 200), size=(1000, 2)).T  # who clicked what
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
liked = known.contains(np.arange(50), np.tile(np.arange(200), (50, 1)))
table = rng.standard_normal((50, 200)) + 3 * liked  # a model's scores
lists, sizes = [rng.permutation(200)[:20].tolist() for _ in range(50)], [0]  # a few random items to begin with
while sum(map(len, lists)) > sizes[-1]:
    sizes.append(sum(map(len, lists)))
    sampler = ns.samplers.Static(ns.pools.Local(lists, known))
    query = ns.Query(users[:64], positives=items[:64], step=len(sizes))
    negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0, step=query.step))  # train with them here
    wrong = ~liked & (table > np.where(liked, table, np.inf).min(axis=1, keepdims=True))
    hardest = np.argsort(np.where(wrong, -table, np.inf), axis=1)[:, :8]  # of each round
    found = [row[right] for row, right in zip(hardest, np.take_along_axis(wrong, hardest, axis=1), strict=True)]
    lists = [sorted({*have, *new.tolist()}) for have, new in zip(lists, found, strict=True)]
