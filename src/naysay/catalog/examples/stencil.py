"""STENCIL: mixes of the nodes whose place in the graph is most alike, by eigenvectors of its Laplacian."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(1)
block = np.arange(60) % 3
links = np.triu(rng.random((60, 60)) < np.where(block[:, None] == block, 0.3, 0.03), 1)
known = ns.Positives.from_edges(*np.nonzero(links), n_nodes=60)
adjacency = (links | links.T).astype(float)
scale = 1 / np.sqrt(np.maximum(adjacency.sum(axis=1), 1))
place = np.linalg.eigh(np.eye(60) - scale[:, None] * adjacency * scale)[1][:, 1:9]  # of one metapath
apart = ((place[:, None] - place) ** 2).sum(axis=2)
near = np.argsort(apart + 9.0 * np.eye(60), axis=1)[:, :30]
vectors = rng.standard_normal((60, 8))  # the model's


def embed(nodes):
    return vectors[nodes]


pool = ns.pools.Local(near, known)
sampler = ns.samplers.MoCHi(pool, embed, n_hard=8, candidates=16, embed_anchors=embed)
query = ns.Query(np.arange(60))
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
