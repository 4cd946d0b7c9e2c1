"""RLHN: a cheap judge sees all mined negatives and a better one its hits, which become positives, or leave."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(5)
queries, passages = rng.integers(0, (50, 200), size=(100, 2)).T
known = ns.Positives.from_pairs(queries, passages, n_anchors=50, n_items=200)
relevant = rng.random((50, 200))  # what a language model would say; here a number
lists = np.argsort(-relevant + rng.normal(0, 0.2, relevant.shape), axis=1)[:, :30]
mined = ns.samplers.Static(ns.pools.Local(lists, known))
cheap = ns.detectors.Guide(lambda anchors, ids: relevant[anchors, ids].round(1), 0.9)
cascade = ns.detectors.Guide(lambda anchors, ids: relevant[anchors, ids], 0.95, first=cheap, budget=100)
sampler = ns.samplers.Judged(mined, {"cascade": cascade}, "drop", refill=2)  # the false ones leave
query = ns.Query(queries[:32], positives=passages[:32])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
candidates = mined.sample(query, 8, rng=ns.rng_for(seed=0))
suspicion = cascade.suspicion(query, candidates)
relabelled = ns.detectors.attract(candidates, suspicion)  # the false ones are positives, for losses.attract
ignored = ns.detectors.ignore(candidates, suspicion)  # or neither
