"""Bucher et al.: half of the negatives where the model is unsure, half of classes that are alike."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(4)
images, classes = np.arange(300), np.arange(300) % 40
known = ns.Positives.from_pairs(images, classes, n_anchors=300, n_items=40)
of_image, of_class = rng.standard_normal((300, 8)), rng.standard_normal((40, 8))


def score(anchors, ids):
    return np.einsum("bd,bnd->bn", of_image[anchors], of_class[ids])


near = np.argsort(-(of_class @ of_class.T), axis=1)[:, :10]
unsure = ns.samplers.Dynamic(ns.pools.Everything(known), score, candidates=32, temperature=1.0)
alike = ns.samplers.Static(ns.pools.Local(near[classes], known))
sampler = ns.samplers.Mixed({"unsure": unsure, "alike": alike}, shares=(0.5, 0.5))
negatives = sampler.sample(ns.Query(images[:64], positives=classes[:64]), 4, rng=ns.rng_for(seed=0))
