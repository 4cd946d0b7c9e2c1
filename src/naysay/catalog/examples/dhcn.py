"""DHCN: two encodings of a session agree, and one of them does not agree with shuffled numbers."""

import torch

import naysay as ns

start = torch.Generator().manual_seed(0)
one, two = torch.randn(2, 64, 16, generator=start)  # of the hypergraph, and of the graph of sessions
made = ns.samplers.shuffled(one, rows=True, columns=True, rng=ns.rng_for(seed=0))
loss = ns.losses.sampled_bce((one * two).sum(1), (two * made).sum(1)[:, None])
