"""PRFMC: a venue is the likelier a negative, the farther it is and the less it was visited by friends."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(0)
users, venues = rng.integers(0, (50, 200), size=(1000, 2)).T  # check-ins
known = ns.Positives.from_pairs(users, venues, n_anchors=50, n_items=200)
place, home = rng.random((200, 2)), rng.random((50, 3, 2))  # three centres for each user
visits = rng.poisson(0.5, (50, 200))  # of friends


def score(anchors, ids):
    far = ((home[anchors][:, None] - place[ids][:, :, None]) ** 2).sum(-1)  # to each centre
    near = np.exp(-far / 0.02).mean(-1)  # a Gaussian around each
    social = 1 - (1 + visits[anchors[:, None], ids]) ** -1.5  # a power law
    return np.log1p(-0.99 * near) + np.log1p(-0.99 * social)  # of the product of both


pool = ns.pools.Everything(known)
sampler = ns.samplers.Dynamic(pool, score, candidates=200, temperature=1.0)  # all venues: the product, renormalised
query = ns.Query(users[:64], positives=venues[:64])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
