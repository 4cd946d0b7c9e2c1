"""losses.eliminate: detected false negatives are removed from the denominator."""

import functools

import torch

import naysay as ns

views = torch.linspace(-1, 1, 48, dtype=torch.float64).sin().reshape(8, 6)  # 4 images, two views of each
z = torch.nn.functional.normalize(views, dim=1).requires_grad_()
partner = [4, 5, 6, 7, 0, 1, 2, 3]  # row i and row i + 4 are one image
labels = [0, 0, 1, -1, 0, 0, 1, -1]  # clusters; -1 is none
loss = functools.partial(ns.losses.eliminate, temperature=0.5)
values = loss(z, partner, labels)  # (8,), unreduced
