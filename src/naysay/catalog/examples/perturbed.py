"""perturbed: hard words by softmax, moved a little further towards the anchor."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(1)
pairs = rng.integers(0, 80, size=(300, 2))  # words that belong together
known = ns.Positives.from_edges(pairs, n_nodes=80)
place = rng.standard_normal((80, 8))  # a model's vectors


def score(anchors, ids):
    return np.einsum("bd,bnd->bn", place[anchors], place[ids])


def embed(ids):
    return place[ids]


hard = ns.samplers.Dynamic(ns.pools.Everything(known), score, candidates=32, temperature=1.0)
sampler = ns.samplers.Perturbed(hard, embed, radius=0.1, embed_anchors=embed)
query = ns.Query(pairs[:64, 0], positives=pairs[:64, 1])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
