"""losses.gist: InfoNCE without negatives that a guide model scores close to the positive or above it."""

import functools

import torch

import naysay as ns

scores = torch.linspace(-1, 1, 36, dtype=torch.float64).reshape(9, 4).T  # 4 anchors: a positive and eight negatives
loss = functools.partial(ns.losses.gist, temperature=1.0)  # the model guides itself
values = loss(scores[:, 8], scores[:, :8])  # (4,), unreduced
