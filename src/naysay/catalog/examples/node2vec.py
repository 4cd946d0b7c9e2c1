"""node2vec: nodes by (visits of biased random walks)^0.75."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(2)
sources, targets = rng.integers(0, 300, size=(2, 1500))  # a graph
known = ns.Positives.from_edges(sources, targets, 300)
edges = {v: [] for v in range(300)}
for a, b in zip(sources, targets, strict=True):
    edges[a].append(b)
    edges[b].append(a)
visits, p, q = np.zeros(300), 4.0, 0.25
for before in range(300):  # one walk per node, biased by where it came from
    here = before
    for _ in range(10 if edges[here] else 0):
        bias = np.array([1 / p if v == before else 1.0 if v in edges[before] else 1 / q for v in edges[here]])
        before, here = here, rng.choice(edges[here], p=bias / bias.sum())
        visits[here] += 1
weights = ns.pools.popularity(visits, 0.75)  # visits^0.75
sampler = ns.samplers.Static(ns.pools.Everything(known, weights, distinct=False))
query = ns.Query(sources[:64], positives=targets[:64])
negatives = sampler.sample(query, 5, rng=ns.rng_for(seed=0))
