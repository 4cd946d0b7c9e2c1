"""detectors.Bands: easy, hard and false negatives by two thresholds, chosen by shares of all pairs."""

import numpy as np

import naysay as ns

users, items = np.random.default_rng(0).integers(0, (50, 200), size=(1000, 2)).T  # who clicked what
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
rng = np.random.default_rng(1)
user, item = rng.standard_normal((50, 16)), rng.standard_normal((200, 16))  # a model's embeddings


def score(anchors, ids):
    return np.einsum("bd,bnd->bn", user[anchors], item[ids])


pool = ns.pools.Everything(known)
query = ns.Query(users[:64])
scores = score(users, pool.draw(ns.Query(users), 100, rng=ns.rng_for(seed=0)).ids)  # scores of 100,000 negatives
chosen = ns.detectors.choose_thresholds(scores, n_positives=len(users))  # 0.1 % false, 5 % hard
detector = ns.detectors.Bands(chosen.low, chosen.high)
negatives = ns.samplers.Dynamic(pool, score, candidates=64).sample(query, 8, rng=ns.rng_for(seed=1))
suspicion = detector.suspicion(query, negatives)  # (64, 8): 1 at or above high
