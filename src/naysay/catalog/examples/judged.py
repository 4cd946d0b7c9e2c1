"""judged: the first k candidates of a sampler that a detector does not flag."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(0)
documents = [f"Document {i % 80}" + "." * (i // 80) for i in range(160)]  # each twice, with and without a full stop
table = rng.standard_normal((40, 160))  # a model's scores
table[np.arange(40), np.arange(40) + 80] = 9.0  # the duplicate of each positive is its hardest negative


def score(anchors, ids):
    return table[anchors[:, None], ids]


known = ns.Positives.from_pairs(np.arange(40), np.arange(40), n_items=160)
hard = ns.samplers.Dynamic(ns.pools.Everything(known), score, candidates=64)
duplicates = ns.detectors.Duplicates(item_texts=documents, positives=known)
sampler = ns.samplers.Judged(hard, {"duplicates": duplicates}, "drop", refill=2)
query = ns.Query(np.arange(40), positives=np.arange(40))
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))  # the 4 hardest that are no duplicate of the positive
