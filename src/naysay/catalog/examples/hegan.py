"""HeGAN: vectors around the anchor, from noise, that must differ from each other."""

import numpy as np
import torch

import naysay as ns

rng = np.random.default_rng(1)
users, items = rng.integers(0, (50, 200), size=(1000, 2)).T  # who clicked what
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
of_user, of_item = (torch.nn.Embedding(n, 8) for n in (50, 200))
net = torch.nn.Sequential(torch.nn.Linear(16, 8), torch.nn.LeakyReLU())
generator = lambda user, liked, other, noise: net(torch.cat([user, noise], dim=-1))  # noqa: E731
loss = lambda user, liked, made: ns.losses.sampled_bce((user * liked).sum(-1), (user[:, None] * made).sum(-1))  # noqa: E731
base, optimizer = ns.samplers.Static(ns.pools.Everything(known)), torch.optim.Adam(net.parameters(), 1e-4)
settings = dict(noise=8, stay=0.0, diversity=0.1, embed_anchors=of_user)  # noqa: C408
sampler = ns.samplers.Generated(base, of_item, generator, optimizer, loss, **settings)
query = ns.Query(torch.from_numpy(users[:64]), positives=torch.from_numpy(items[:64]))
negatives = sampler.sample(query, 16, rng=ns.rng_for(seed=0))
sampler.observe(query, negatives)
