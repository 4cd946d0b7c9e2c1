"""losses.self_adversarial: logistic loss with negatives weighted by the model's own scores."""

import functools

import torch

import naysay as ns

scores = torch.linspace(-1, 1, 36, dtype=torch.float64).reshape(9, 4).T  # 4 anchors: a positive and eight negatives
loss = functools.partial(ns.losses.self_adversarial, alpha=1.0, margin=6.0)
values = loss(scores[:, 8], scores[:, :8])  # (4,), unreduced
