"""HDC: deeper heads keep a smaller share of the pairs, the hardest by their own loss."""

import torch

import naysay as ns

start, pairs = torch.Generator().manual_seed(0), 200
distances = torch.rand(3, 2, pairs, generator=start) * 2  # of three heads, of positive and of negative pairs
loss = torch.zeros(())
for head, share in enumerate((1.0, 0.5, 0.2)):
    for values in (distances[head, 0], 10 * (1 - distances[head, 1]).clamp(min=0)):
        kept = ns.losses.keep_hardest(values, share) * (values > 0)
        loss = loss + (values * kept).sum() / kept.sum().clamp(min=1)
