"""detectors.Mixture normal: the posterior probability of the higher of two normal components."""

import dataclasses

import numpy as np

import naysay as ns

world = ns.testing.planted_world(200, 300, per_anchor=10, noise=0.5)
query = ns.Query(np.arange(64))
negatives = ns.pools.Everything(world.known).draw(query, 50, rng=ns.rng_for(seed=0))
negatives = dataclasses.replace(negatives, scores=world.scores(query.anchors, negatives.ids))
detector = ns.detectors.Mixture("normal")
detector.update(negatives.scores, mask=negatives.mask)  # fits two components
suspicion = detector.suspicion(query, negatives)  # (64, 50): the posterior of the higher component
weights = detector.weights(negatives.scores, mask=negatives.mask)  # ProGCL's: high for true, hard negatives
