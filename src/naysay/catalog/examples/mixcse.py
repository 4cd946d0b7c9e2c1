"""MixCSE: a fifth of the positive mixed into one random sentence of the batch."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(2)
users, items = rng.integers(0, (50, 200), size=(1000, 2)).T
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
of_user, of_item = rng.standard_normal((50, 8)), rng.standard_normal((200, 8))


def embed(ids):
    return of_item[ids]


def embed_anchors(users):
    return of_user[users]


sampler = ns.samplers.MixGCF(ns.pools.InBatch(known), embed, candidates=1, mix=(0.2, 0.2), embed_anchors=embed_anchors)
query = ns.Query(users[:64], positives=items[:64])  # vectors=... may replace embed_anchors
negatives = sampler.sample(query, 1, rng=ns.rng_for(seed=0))  # then normalise negatives.vectors, and detach them
