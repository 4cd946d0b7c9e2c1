"""markov-chain: a chain per user over items and their nearest items, by a power of the model's probability."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(0)
users, items = rng.integers(0, (50, 200), size=(1000, 2)).T  # who clicked what
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
of_user, of_item = rng.standard_normal((50, 8)), rng.standard_normal((200, 8))  # a model's vectors


def score(anchors, ids):
    return 1 / (1 + np.exp(-np.einsum("bd,bnd->bn", of_user[anchors], of_item[ids])))


nearest = np.argsort(-(of_item @ of_item.T), axis=1)[:, 1:11]
sampler = ns.samplers.MarkovChain(known, score, nearest, power=0.25, steps=10)
query = ns.Query(users[:64], positives=items[:64])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
sampler.observe(query, negatives)  # the chains go on from here
