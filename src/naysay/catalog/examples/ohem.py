"""OHEM: of all regions of an image the hardest, at most one of a group that overlaps, train the model."""

import torch

import naysay as ns

scores = torch.randn(256, generator=torch.Generator().manual_seed(0), requires_grad=True)
losses = torch.nn.functional.softplus(-scores)  # one of each region
overlap = torch.arange(256) // 3  # groups of regions
loss = (losses * ns.losses.keep_hardest(losses, 64, groups=overlap)).sum() / 64
loss.backward()  # 64 regions have a gradient
