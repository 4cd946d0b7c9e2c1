"""listed: candidates from the anchor's own list: search results, impressions, neighbours."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(0)
questions, passages = rng.integers(0, (50, 400), size=(600, 2)).T
known = ns.Positives.from_pairs(questions, passages, n_anchors=50, n_items=400)
of_question, of_passage = rng.standard_normal((50, 8)), rng.standard_normal((400, 8))
best = np.argsort(-of_question @ of_passage.T, axis=1)[:, :50]  # search results
sampler = ns.samplers.Static(ns.pools.Local(best, known))
query = ns.Query(questions[:64], positives=passages[:64])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
