"""GraphSAGE: nodes by degree^0.75; positives are nodes that occur on the same short walk."""

import numpy as np

import naysay as ns

graph = ns.Positives.from_edges(*np.random.default_rng(2).integers(0, 300, size=(2, 900)), 300)
nodes = np.repeat(np.arange(300), 5)
near = ns.pools.Walks(graph, length=3).endpoints(np.arange(300), 5, rng=ns.rng_for(0)).ravel()
nodes, near = nodes[near >= 0], near[near >= 0]  # nodes on the same short walk are positives
known = ns.Positives.from_pairs(nodes, near, 300, 300)
weights = ns.pools.popularity(graph.count(), 0.75)  # degree^0.75
sampler = ns.samplers.Static(ns.pools.Everything(known, weights, distinct=False))
query = ns.Query(nodes[:64], positives=near[:64])
negatives = sampler.sample(query, 20, rng=ns.rng_for(seed=0))
