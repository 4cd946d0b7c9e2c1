"""GraphGAN: walks down a breadth-first tree until they turn back; what the model takes for a neighbour is rewarded."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(0)
edges = rng.integers(0, 80, size=(200, 2))
known = ns.Positives.from_edges(edges, n_nodes=80)
place = rng.standard_normal((80, 8))


def reward(anchors, ids):
    return np.logaddexp(0.0, np.einsum("bd,bnd->bn", place[anchors], place[ids]))


sampler = ns.samplers.GraphPolicy(known, ns.samplers.Factors(80, 80, d=8), reward, hops=3, width=5, stop="return")
query = ns.Query(edges[:64, 0], positives=edges[:64, 1])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
sampler.observe(query, negatives)
