"""Ge et al. (patches): an image filled with crops of an image keeps its texture and loses its shape."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(1)
images = rng.random((100, 8, 8))
encoder = rng.standard_normal((64, 16))
known = ns.Positives.from_pairs(np.arange(100), np.arange(100), 100, 100)


def make(ids, rng):
    corner = rng.integers(0, 5, size=(2, ids.size, 2, 2, 1, 1))  # of a 4 x 4 crop for each quarter
    rows, columns = corner[0] + np.arange(4)[:, None], corner[1] + np.arange(4)
    crops = images[ids.reshape(-1, 1, 1, 1, 1), rows, columns]  # (n, 2, 2, 4, 4)
    return (crops.swapaxes(2, 3).reshape(-1, 64) @ encoder).reshape(*ids.shape, 16)


sampler = ns.samplers.Transformed(ns.samplers.Static(ns.pools.Everything(known)), make)
query = ns.Query(np.arange(32), positives=np.arange(32))
negatives = sampler.sample(query, 1, rng=ns.rng_for(seed=0))
