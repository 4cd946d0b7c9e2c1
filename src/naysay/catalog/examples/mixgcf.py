"""MixGCF: the positive is mixed into candidates; the hardest at each layer are combined over the layers."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(0)
users, items = rng.integers(0, (50, 200), size=(1000, 2)).T
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
of_user = rng.standard_normal((50, 8))
of_item = rng.standard_normal((200, 3, 8))  # three layers of a graph network


def embed(ids):
    return of_item[ids]


def embed_anchors(users):
    return of_user[users]


sampler = ns.samplers.MixGCF(ns.pools.Everything(known), embed, candidates=16, embed_anchors=embed_anchors)
query = ns.Query(users[:64], positives=items[:64])  # vectors=... may replace embed_anchors
negatives = sampler.sample(query, 1, rng=ns.rng_for(seed=0))
