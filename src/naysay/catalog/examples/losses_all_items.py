"""losses.all_items: all items that a user did not click are negatives of weight 0.1."""

import functools

import torch

import naysay as ns

known = ns.Positives.from_pairs([0, 0, 1, 2], [3, 5, 1, 0], n_anchors=3, n_items=6)  # who clicked what
users, items = torch.linspace(-1, 1, 36, dtype=torch.float64).sin().reshape(9, 4).split((3, 6))
loss = functools.partial(ns.losses.all_items, weight=0.1)
values = loss(users[[2, 0]], items, (known, [2, 0]))  # (2,), a batch of two users
