"""FaceNet: any candidate of the band, in squared distances of unit vectors, margin 0.2."""

import numpy as np

import naysay as ns

people = np.arange(256) % 16  # 16 pictures of each person
known = ns.Positives.from_pairs(*np.nonzero(people[:, None] == people))  # never a negative of the same person
rng = np.random.default_rng(0)
faces = 0.5 * rng.standard_normal((16, 32))[people] + rng.standard_normal((256, 32))
faces /= np.linalg.norm(faces, axis=1, keepdims=True)


def closeness(anchors, ids):  # minus the squared distance
    return 2 * np.einsum("bd,bnd->bn", faces[anchors], faces[ids]) - 2


sampler = ns.samplers.SemiHard(ns.pools.Everything(known), closeness, candidates=64, margin=0.2, choose="random")
query = ns.Query(np.arange(64), positives=np.arange(64) + 16)
negatives = sampler.sample(query, 1, rng=ns.rng_for(seed=0))  # d_ap < d_an < d_ap + 0.2
