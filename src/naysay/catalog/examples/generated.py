"""generated: a small network turns a random item into one that is hard for this user."""

import numpy as np
import torch

import naysay as ns

rng = np.random.default_rng(0)
users, items = rng.integers(0, (50, 200), size=(1000, 2)).T  # who clicked what
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
of_user, of_item = (torch.nn.Embedding(n, 8) for n in (50, 200))
net = torch.nn.Linear(24, 8)
generator = lambda user, liked, other, noise: other + net(torch.cat([user, liked, other], dim=-1))  # noqa: E731
loss = lambda user, liked, made: ns.losses.bpr((user * liked).sum(-1), (user[:, None] * made).sum(-1))  # noqa: E731
base, optimizer = ns.samplers.Static(ns.pools.Everything(known)), torch.optim.Adam(net.parameters())
sampler = ns.samplers.Generated(base, of_item, generator, optimizer, loss, embed_anchors=of_user)
query = ns.Query(torch.from_numpy(users[:64]), positives=torch.from_numpy(items[:64]))
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
sampler.observe(query, negatives)  # a step of the network, which does not reach the embeddings
