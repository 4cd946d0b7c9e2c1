"""MHCN: a user is nearer to its own group than to a shuffled one, and that is nearer than one of shuffled numbers."""

import torch

import naysay as ns

start = torch.Generator().manual_seed(0)
users, groups = torch.randn(2, 64, 16, generator=start)  # users, and the mean of each one's hyperedge
rng = ns.rng_for(seed=0)
own = (users * groups).sum(1)
other = (ns.samplers.shuffled(users, rng=rng) * groups).sum(1)
made = (users * ns.samplers.shuffled(groups, rows=True, columns=True, rng=rng)).sum(1)
loss = ns.losses.bpr(own, other[:, None]) + ns.losses.bpr(other, made[:, None])
