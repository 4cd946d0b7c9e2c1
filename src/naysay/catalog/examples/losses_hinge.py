"""losses.hinge: ranks the positive above each negative by a margin."""

import functools

import torch

import naysay as ns

scores = torch.linspace(-1, 1, 36, dtype=torch.float64).reshape(9, 4).T  # 4 anchors: a positive and eight negatives
loss = functools.partial(ns.losses.hinge, margin=0.5)
values = loss(scores[:, 8], scores[:, :8])  # (4,), unreduced
