"""hard-mixing: new vectors from an anchor's hardest candidates, mixed in pairs or with the anchor."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(1)
users, items = rng.integers(0, (50, 200), size=(1000, 2)).T
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
of_user, of_item = rng.standard_normal((50, 8)), rng.standard_normal((200, 8))


def embed(ids):
    return of_item[ids]


def embed_anchors(users):
    return of_user[users]


sampler = ns.samplers.MoCHi(ns.pools.Everything(known), embed, n_hard=16, candidates=64, embed_anchors=embed_anchors)
query = ns.Query(users[:64], positives=items[:64])  # vectors=... may replace embed_anchors
negatives = sampler.sample(query, 8, rng=ns.rng_for(seed=0))
