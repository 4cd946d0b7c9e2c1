"""duplicates by vectors and links: by cosine, and positives of neighbours."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(0)
vectors = rng.standard_normal((100, 16))
vectors[50:] = vectors[:50] + 0.02 * rng.standard_normal((50, 16))  # near copies
known = ns.Positives.from_pairs(np.arange(100), np.roll(np.arange(100), 1))
query = ns.Query(np.arange(100))
negatives = ns.samplers.Static(ns.pools.Everything(known)).sample(query, 50, rng=ns.rng_for(seed=0))
detector = ns.detectors.Duplicates(item_vectors=vectors, positives=known, shared_ids=True, transitive=0.75)
suspicion = detector.suspicion(query, negatives)  # near the positive, near the anchor, the anchor itself
