"""detectors.Labelled: human labels of some candidates, generalised to all by score, group and other features."""

import numpy as np

import naysay as ns

world = ns.planted_world(n_anchors=300, n_items=500, per_anchor=8, noise=0.5)
sampler = ns.samplers.Dynamic(ns.pools.Everything(world.known), world.scores, candidates=200)
language = np.arange(300) % 3  # a group of each anchor, in which scores may mean something else
labelled = ns.Query(np.arange(0, 300, 2))
candidates = sampler.sample(labelled, 4, rng=ns.rng_for(seed=0))  # 600 pairs that people have labelled
detector = ns.detectors.Labelled(groups=language).fit(labelled, candidates, world.is_false_negative)
query = ns.Query(np.arange(1, 300, 2))
negatives = sampler.sample(query, 8, rng=ns.rng_for(seed=1))
suspicion = detector.suspicion(query, negatives)  # (150, 8), the probability of a false negative
