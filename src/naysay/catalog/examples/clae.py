"""CLAE: negatives moved by the sign of the gradient, each coordinate by the same amount."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(2)
users, items = rng.integers(0, (50, 200), size=(1000, 2)).T  # who clicked what
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
of_user, of_item = rng.standard_normal((50, 8)), rng.standard_normal((200, 8))  # a model's vectors


def embed(ids):
    return of_item[ids]


def embed_users(users):
    return of_user[users]


base = ns.samplers.Static(ns.pools.InBatch(known))
sampler = ns.samplers.Perturbed(base, embed, radius=0.03, norm="inf", embed_anchors=embed_users)
query = ns.Query(users[:64], positives=items[:64])
negatives = sampler.sample(query, 8, rng=ns.rng_for(seed=0))
