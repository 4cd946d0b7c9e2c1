"""detectors.SupportViews: flags negatives that are similar to one of many views of the anchor."""

import numpy as np

import naysay as ns

world = ns.testing.planted_world(200, 300, per_anchor=10, noise=0.5)
noise = ns.rng_for(seed=1).standard_normal((200, 8, 32)) / 8
views = world.anchor_vectors[:, None] + noise  # eight more views of each anchor
query = ns.Query(np.arange(64))
negatives = ns.pools.Everything(world.known).draw(query, 50, rng=ns.rng_for(seed=0))
detector = ns.detectors.SupportViews(views, lambda ids: world.item_vectors[ids], top=10, threshold=0.5)
suspicion = detector.suspicion(query, negatives)  # (64, 50); 0.5 and above: in the top 10, and near
