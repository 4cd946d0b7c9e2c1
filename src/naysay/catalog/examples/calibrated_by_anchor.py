"""calibrated by anchor: the same with scores standardised by random candidates of the anchor."""

import naysay as ns

world = ns.planted_world(n_anchors=200, n_items=400, per_anchor=2, known_share=0.5, spread=0.5, noise=0.2)
anchors, positives = world.known.pairs()  # one labelled positive per anchor; the other one is a false negative
query = ns.Query(anchors[:64], positives=positives[:64])
sampler = ns.samplers.Dynamic(ns.pools.Everything(world.known), world.scores, candidates=64)
negatives = sampler.sample(query, 8, rng=ns.rng_for(seed=0))
positive_scores = world.scores(anchors, positives[:, None])[:, 0]
background = world.scores(anchors, ns.rng_for(seed=1).integers(0, 400, (200, 100)))  # random candidates
detector = ns.detectors.Calibrated(alpha=0.05, standardise=True).fit(positive_scores, anchors, background=background)
suspicion = detector.suspicion(query, negatives)  # (64, 8), flagged at 0.5 and above
