"""losses.in_batch_hinge: the hardest negative of the batch, in both directions; captions of one image are none."""

import functools

import torch

import naysay as ns

vectors = torch.linspace(-1, 1, 48, dtype=torch.float64).sin().reshape(2, 4, 6)
images, captions = torch.nn.functional.normalize(vectors, dim=2)
image_of = [0, 1, 2, 2]  # two captions of image 2
loss = functools.partial(ns.losses.in_batch_hinge, labels=image_of, key_labels=image_of, margin=0.2, among=1)
values = loss(images, captions) + loss(captions, images)  # (4,), unreduced
