"""Wang and Liu: how much of the gradient the hardest negatives have, by temperature; or only those are kept."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(0)
users, items = rng.integers(0, (50, 200), size=(500, 2)).T
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
of_user, of_item = rng.standard_normal((50, 8)), rng.standard_normal((200, 8))


def score(anchors, ids):
    return np.einsum("bd,bnd->bn", of_user[anchors], of_item[ids])


scores = score(users[:64], np.tile(np.arange(200), (64, 1)))
masses = {t: ns.difficulty.gradient_mass(scores, temperature=t) for t in (0.1, 1.0)}
hardest = ns.samplers.Ring(ns.pools.Everything(known), score, candidates=100, keep=(0.95, 1.0))
negatives = hardest.sample(ns.Query(users[:64], positives=items[:64]), 4, rng=ns.rng_for(seed=0))
