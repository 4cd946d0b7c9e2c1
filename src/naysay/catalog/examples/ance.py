"""ANCE: the nearest items by vectors of some steps ago, encoded again beside the training loop."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(2)
queries, documents = rng.integers(0, (50, 200), size=(300, 2)).T
known = ns.Positives.from_pairs(queries, documents, n_anchors=50, n_items=200)
inputs = {name: rng.standard_normal((n, 16)) for name, n in (("query", 50), ("document", 200))}
weights = np.eye(16)


def encode(copied):
    return inputs["document"] @ copied, inputs["query"] @ copied


pool = ns.pools.Nearest(inputs["document"], 40, known, queries=inputs["query"], metric="dot")
refresh = ns.pools.Refresh(pool, lambda: weights.copy(), encode, every=4, lag=1)
sampler = ns.samplers.Static(pool)
for step in range(10):
    query = ns.Query(queries[:32], positives=documents[:32], step=step)
    negatives = sampler.sample(query, 8, rng=ns.rng_for(seed=0, step=step))
    weights += 0.01 * rng.standard_normal(weights.shape)  # a training step
    refresh.observe(query, negatives)
