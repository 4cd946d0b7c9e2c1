"""DAML: a network makes a negative close to the anchor and to its start, within a margin beyond the positive."""

import numpy as np
import torch

import naysay as ns

labels = np.arange(120) % 12
known = ns.Positives.from_pairs(*np.nonzero(labels[:, None] == labels))
table, net = torch.nn.Embedding(120, 8), torch.nn.Linear(24, 8)
distance = lambda one, other: ((one - other) ** 2).sum(-1)  # noqa: E731
beyond = lambda a, p, made: torch.relu(distance(made, a[:, None]) - distance(p, a)[:, None] - 0.5)  # noqa: E731
triplet = lambda a, p, made: torch.relu(distance(a, p)[:, None] - distance(a[:, None], made) + 1.0)  # noqa: E731
sampler = ns.samplers.Generated(
    ns.samplers.Static(ns.pools.Everything(known)),
    table,
    lambda a, p, n, noise: n + net(torch.cat([a, p, n], dim=-1)),
    torch.optim.Adam(net.parameters()),
    lambda a, p, made: triplet(a, p, made) - 50 * beyond(a, p, made),  # the margin has a weight of 50 here
    pull=1.0,
    stay=1.0,
    embed_anchors=table,
)
query = ns.Query(torch.arange(64), positives=torch.arange(64) + 12)
negatives = sampler.sample(query, 2, rng=ns.rng_for(seed=0))
