"""losses.invariant_spreading: two views of an image find each other, and no other image is likely."""

import functools

import torch

import naysay as ns

views = torch.linspace(-1, 1, 48, dtype=torch.float64).sin().reshape(8, 6)  # 4 images, two views of each
z = torch.nn.functional.normalize(views, dim=1)
loss = functools.partial(ns.losses.invariant_spreading, temperature=0.1)
values = loss(z, [4, 5, 6, 7, 0, 1, 2, 3])  # (8,), unreduced
