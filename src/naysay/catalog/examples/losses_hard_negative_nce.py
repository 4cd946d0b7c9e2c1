"""losses.hard_negative_nce: the debiased loss with higher weights for hard negatives."""

import functools

import torch

import naysay as ns

scores = torch.linspace(-1, 1, 36, dtype=torch.float64).reshape(9, 4).T  # 4 anchors: a positive and eight negatives
loss = functools.partial(ns.losses.hard_negative_nce, beta=1.0, prior=0.05)
values = loss(scores[:, 8], scores[:, :8])  # (4,), unreduced
