"""losses.bounded_margin: a negated sentence stays below the sentence's other reading, but not far below."""

import functools

import torch

import naysay as ns

scores = torch.linspace(-1, 1, 36, dtype=torch.float64).reshape(9, 4).T  # 4 sentences: a positive and eight negations
loss = functools.partial(ns.losses.bounded_margin, low=0.1, high=0.3)
values = loss(scores[:, 8], scores[:, :8])  # (4,), unreduced
