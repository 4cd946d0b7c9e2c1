"""MVGRL: nodes of one view against the other graphs of the second view; the paper uses a Jensen-Shannon loss."""

import numpy as np
import torch

import naysay as ns

n = 100  # graphs
views = np.arange(2 * n)  # view v shows graph v % n
known = ns.Positives.from_pairs(np.tile(np.arange(n), 2), views)  # both views are positives of graph i
pool = ns.pools.InBatch(known)
sampler = ns.samplers.Static(pool)
batch = np.arange(16)
query = ns.Query(np.tile(batch, 2), positives=np.concatenate([batch + n, batch]))  # each view's positive is the other
negatives = sampler.sample(query, 2 * len(batch) - 2, rng=ns.rng_for(seed=0))  # 2 (B - 1), the rest of the batch
rng = np.random.default_rng(14)
z = torch.from_numpy(rng.standard_normal((2 * len(batch), 16)))  # graphs, in two views
z, partner = torch.nn.functional.normalize(z, dim=1), np.roll(np.arange(len(z)), len(batch))
nodes = torch.nn.functional.normalize(torch.from_numpy(rng.standard_normal((80, 16))), dim=1)  # five of each graph
loss = ns.losses.in_batch(nodes, z[16:], partner=np.repeat(batch, 5))  # the graphs of the other view
