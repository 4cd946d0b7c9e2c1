"""losses.decoupled: InfoNCE without the positive in the denominator."""

import functools

import torch

import naysay as ns

scores = torch.linspace(-1, 1, 36, dtype=torch.float64).reshape(9, 4).T  # 4 anchors: a positive and eight negatives
loss = functools.partial(ns.losses.decoupled, temperature=0.5)
values = loss(scores[:, 8], scores[:, :8])  # (4,), unreduced
