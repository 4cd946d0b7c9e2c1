"""losses.sampled_bce: binary cross-entropy: label 1 for the positive, 0 for each negative."""

import torch

import naysay as ns

scores = torch.linspace(-1, 1, 36, dtype=torch.float64).reshape(9, 4).T  # 4 anchors: a positive and eight negatives
loss = ns.losses.sampled_bce
values = loss(scores[:, 8], scores[:, :8])  # (4,), unreduced
