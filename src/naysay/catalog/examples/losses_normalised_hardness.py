"""losses.normalised_hardness: the hardest of a row count most, whatever the spread of its scores."""

import functools

import torch

import naysay as ns

scores = torch.linspace(-1, 1, 36, dtype=torch.float64).reshape(9, 4).T  # 4 entities: a positive and eight negatives
loss = functools.partial(ns.losses.normalised_hardness, scale=30.0, shift=10.0)
values = loss(scores[:, 8], scores[:, :8])  # (4,), unreduced; its value does not depend on the positive
