"""MVGRL: nodes of one view against the other graphs of the second view, by the paper's Jensen-Shannon loss."""

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
graphs, nodes = (torch.from_numpy(rng.standard_normal((count, 16))) for count in (16, 80))  # five nodes of each graph


def jensen_shannon(nodes, graphs, own):
    scores, others = nodes @ graphs.T, torch.arange(len(graphs)) != own[:, None]
    share = torch.full(scores.shape, 1 / (len(graphs) - 1), dtype=scores.dtype)
    return ns.losses.sampled_bce(scores.gather(1, own[:, None])[:, 0], scores, mask=others, weights=share) - np.log(4)


loss = jensen_shannon(nodes, graphs, torch.arange(80) // 5)
