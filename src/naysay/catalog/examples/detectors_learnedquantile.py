"""detectors.LearnedQuantile: flags the top alpha of each anchor's negatives, by a threshold updated in training."""

import dataclasses

import naysay as ns

world = ns.planted_world(n_anchors=200, n_items=400, per_anchor=2, known_share=0.5, spread=0.5, noise=0.2)
anchors, positives = world.known.pairs()  # one labelled positive per anchor; the other one is a false negative
query = ns.Query(anchors[:64], positives=positives[:64])
sampler = ns.samplers.Dynamic(ns.pools.Everything(world.known), world.scores, candidates=64)
negatives = sampler.sample(query, 8, rng=ns.rng_for(seed=0))
detector = ns.detectors.LearnedQuantile(n_anchors=200, alpha=0.05)
pool = ns.pools.Everything(world.known)
for step in range(100):  # once per training step: random candidates
    batch = ns.Query(anchors[step % 4 :: 4], step=step)
    drawn = pool.draw(batch, 32, rng=ns.rng_for(seed=2, step=step))
    detector.observe(batch, dataclasses.replace(drawn, scores=world.scores(batch.anchors, drawn.ids)))
query = dataclasses.replace(query, step=100)
suspicion = detector.suspicion(query, negatives)  # (64, 8), flagged at 0.5 and above
