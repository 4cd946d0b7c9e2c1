"""losses.sup_con: every sample of the anchor's class is a positive."""

import functools

import torch

import naysay as ns

views = torch.linspace(-1, 1, 48, dtype=torch.float64).sin().reshape(8, 6)  # 4 images, two views of each
z = torch.nn.functional.normalize(views, dim=1).requires_grad_()
labels = [0, 0, 1, -1, 0, 0, 1, -1]  # classes; -1 is none
loss = functools.partial(ns.losses.sup_con, temperature=0.5)
values = loss(z, labels)  # (8,), unreduced
