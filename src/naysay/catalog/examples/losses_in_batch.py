"""losses.in_batch: the rest of the batch as negatives, in little memory: plain, masked, debiased or hard."""

import functools

import torch

import naysay as ns

views = torch.linspace(-1, 1, 48, dtype=torch.float64).sin().reshape(8, 6)  # 4 images, two views of each
z = torch.nn.functional.normalize(views, dim=1).requires_grad_()
partner = [4, 5, 6, 7, 0, 1, 2, 3]  # row i and row i + 4 are one image
loss = functools.partial(ns.losses.in_batch, temperature=0.5)
values = loss(z, partner=partner)  # (8,), unreduced
