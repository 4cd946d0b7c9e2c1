"""transformed: images whose four quarters are in another order, encoded anew."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(0)
images = rng.random((100, 8, 8))
encoder = rng.standard_normal((64, 16))  # a linear one
known = ns.Positives.from_pairs(np.arange(100), np.arange(100), 100, 100)  # an image is its own positive


def make(ids, rng):
    scrambled = ns.samplers.jigsaw(images[ids.ravel()], 2, rng=rng)
    return (scrambled.reshape(-1, 64) @ encoder).reshape(*ids.shape, 16)


sampler = ns.samplers.Transformed(ns.samplers.Static(ns.pools.Everything(known)), make)
query = ns.Query(np.arange(32), positives=np.arange(32))
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
