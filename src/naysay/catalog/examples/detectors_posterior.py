"""detectors.Posterior: the probability of an unlabelled positive, from labelled positives in ranked lists."""

import numpy as np

import naysay as ns

world = ns.planted_world(n_anchors=300, n_items=600, per_anchor=2, known_share=0.5, spread=0.9, noise=0.1)
query = ns.Query(np.arange(300))
own = world.scores(query.anchors, world.known.indices[:, None])[:, 0]  # one labelled positive of each anchor
nearest = ns.mine(world.anchor_vectors, world.item_vectors, world.known, k=60, judge=None)
detector = ns.detectors.Posterior(k=8, positive_scores=own).fit(nearest.scores, own)
negatives = nearest.negatives()
suspicion = detector.suspicion(query, negatives)  # (300, 60), the probability of a false negative
kept = ns.detectors.drop(negatives, suspicion, threshold=detector.threshold)
