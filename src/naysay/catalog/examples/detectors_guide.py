"""detectors.Guide: the scores of a better model, for the slots where a first detector is least certain."""

import naysay as ns

world = ns.planted_world(n_anchors=200, n_items=400, per_anchor=2, known_share=0.5, spread=0.5, noise=0.2)
anchors, positives = world.known.pairs()  # one labelled positive per anchor; the other one is a false negative
query = ns.Query(anchors[:64], positives=positives[:64])
sampler = ns.samplers.Dynamic(ns.pools.Everything(world.known), world.scores, candidates=64)
negatives = sampler.sample(query, 8, rng=ns.rng_for(seed=0))


def rerank(anchors, ids):  # a better, slower model: one score per pair
    return (world.anchor_vectors[anchors] * world.item_vectors[ids]).sum(axis=1)


detector = ns.detectors.Guide(rerank, threshold=0.6, first=0.6, scale=0.1, budget=100)  # the 100 pairs nearest to 0.6
suspicion = detector.suspicion(query, negatives)  # (64, 8), flagged at 0.5 and above
