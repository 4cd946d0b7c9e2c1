"""distance-weighted: candidates of every distance with equal probability."""

import numpy as np

import naysay as ns

pictures = np.arange(400)
known = ns.Positives.from_edges(pictures[::2], pictures[1::2])  # two views of each picture
vectors = np.random.default_rng(0).standard_normal((400, 16))
vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)


def cosine(anchors, ids):
    return np.einsum("bd,bnd->bn", vectors[anchors], vectors[ids])


sampler = ns.samplers.DistanceWeighted(ns.pools.Everything(known), cosine, candidates=128, dim=16)
query = ns.Query(pictures[:64:2], positives=pictures[1:64:2])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))  # distances from 0.5 to 1.4, with equal probability
