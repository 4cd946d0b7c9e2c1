"""Galanopoulos and Mezaris: the hardest caption of the batch that is not like the video's own caption."""

import torch

import naysay as ns

start = torch.Generator().manual_seed(0)
videos, captions = torch.nn.functional.normalize(torch.randn(2, 32, 16, generator=start), dim=2)
alike = captions @ captions.T  # how similar captions are: a measure of yours
loss = ns.losses.in_batch_hinge(videos, captions, among=1, margin=0.2, mask=alike < 0.5)
loss = loss + ns.losses.in_batch_hinge(captions, videos, among=1, margin=0.2, mask=alike < 0.5)
