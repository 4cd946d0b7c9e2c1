"""detectors.Combined: several detectors as one, with the contribution of each."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(0)
documents = [f"Document {i % 80}" + "." * (i // 80) for i in range(160)]  # each twice, with and without a full stop
scores = rng.random((40, 160))  # of a model
known = ns.Positives.from_pairs(np.arange(40), np.arange(40), n_items=160)
sampler = ns.samplers.Dynamic(ns.pools.Everything(known), lambda a, ids: scores[a[:, None], ids], candidates=100)
query = ns.Query(np.arange(40), positives=np.arange(40))
negatives = sampler.sample(query, 50, rng=ns.rng_for(seed=0))
duplicates = ns.detectors.Duplicates(item_texts=documents, positives=known)
close = ns.detectors.Guide(lambda a, ids: scores[a, ids], threshold=0.97, scale=0.01)
detector = ns.detectors.Combined({"duplicates": duplicates, "close": close}, rule="max")
suspicion = detector.suspicion(query, negatives)  # flagged if either flags
