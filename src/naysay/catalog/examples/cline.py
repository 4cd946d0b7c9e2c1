"""CLINE: sentences in which words are replaced by their opposites."""

import numpy as np

import naysay as ns

texts = [f"the {a} door is {b}" for a in ("first", "last", "red", "blue") for b in ("open", "closed", "new", "old")]
opposite = {"first": "last", "last": "first", "open": "closed", "closed": "open", "new": "old", "old": "new"}
known = ns.Positives.from_pairs(np.arange(16), np.arange(16), 16, 16)
words = sorted({word for text in texts for word in text.split()})


def make(ids, rng):
    turned = [[opposite.get(word, word) for word in texts[i].split()] for i in ids.ravel().tolist()]
    return np.array([[float(text.count(word)) for word in words] for text in turned]).reshape(*ids.shape, len(words))


sampler = ns.samplers.Transformed(ns.samplers.Static(ns.pools.Everything(known)), make)
query = ns.Query(np.arange(8), positives=np.arange(8))
negatives = sampler.sample(query, 2, rng=ns.rng_for(seed=0))
