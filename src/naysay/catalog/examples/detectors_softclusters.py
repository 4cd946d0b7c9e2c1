"""detectors.SoftClusters: flags negatives of the anchor's cluster, by the probability that both belong to it."""

import numpy as np

import naysay as ns

world = ns.testing.planted_world(200, 300, per_anchor=10, noise=0.5)
query = ns.Query(np.arange(64), vectors=world.anchor_vectors[:64])
negatives = ns.pools.Everything(world.known).draw(query, 50, rng=ns.rng_for(seed=0))
detector = ns.detectors.SoftClusters(6, lambda ids: world.item_vectors[ids])
detector.update(np.concatenate([world.anchor_vectors, world.item_vectors]), rng=ns.rng_for(seed=2))  # once per epoch
suspicion = detector.suspicion(query, negatives)  # (64, 50); 0.5 and above: the same cluster
