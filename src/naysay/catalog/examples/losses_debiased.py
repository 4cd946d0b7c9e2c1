"""losses.debiased: InfoNCE minus the expected contribution of false negatives."""

import functools

import torch

import naysay as ns

scores = torch.linspace(-1, 1, 36, dtype=torch.float64).reshape(9, 4).T  # 4 anchors: a positive and eight negatives
loss = functools.partial(ns.losses.debiased, prior=0.05)
values = loss(scores[:, 8], scores[:, :8])  # (4,), unreduced
