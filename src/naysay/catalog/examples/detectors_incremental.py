"""detectors.Incremental: flags samples of the same k-means cluster, more as training goes on."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(0)
kind = rng.integers(0, 8, 400)  # eight classes, unknown to the detector
features = rng.standard_normal((8, 16))[kind] + 0.3 * rng.standard_normal((400, 16))
detector = ns.detectors.Incremental(n_samples=400, clusters=(8, 24))
detector.update(features, progress=0.5)  # half of training is done
known = ns.Positives.from_pairs(np.arange(400), np.arange(400))  # a sample is never its own negative
query = ns.Query(np.arange(64))
negatives = ns.pools.Everything(known).draw(query, 16, rng=ns.rng_for(seed=0))
suspicion = detector.suspicion(query, negatives)
