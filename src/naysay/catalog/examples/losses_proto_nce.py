"""losses.proto_nce: each sample at the centre of its cluster; dense clusters have a lower temperature."""

import functools

import torch

import naysay as ns

z = torch.nn.functional.normalize(torch.linspace(-1, 1, 48, dtype=torch.float64).cos().reshape(8, 6), dim=1)
labels = torch.tensor([0, 0, 0, 1, 1, 1, 2, 2])  # of k-means
centroids = torch.stack([z[labels == cluster].mean(dim=0) for cluster in range(3)])
phi = ns.losses.concentrations(z, centroids, labels, temperature=0.2)
loss = functools.partial(ns.losses.proto_nce, temperatures=phi)
values = loss(z, centroids, labels)  # (8,), unreduced
